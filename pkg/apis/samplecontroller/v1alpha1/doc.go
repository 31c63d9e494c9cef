// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of the group samplecontroller.k8s.io: the Foo
// resource of the articles and of kubernetes/sample-controller, the condition
// that its status reports, and the labels by which its Deployment is known.
//
// The CustomResourceDefinition in config/crd, the clients in pkg/generated and
// the zz_generated files beside this one are made from these types by
// hack/update.sh.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=samplecontroller.k8s.io
package v1alpha1
