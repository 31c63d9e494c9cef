// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of the group coolops.cn: the DatabaseManager
// resource, the conditions and reasons that its status reports, and the labels
// and annotations by which its children are known.
//
// Everything that a user or another program may rely on by name is declared
// here, once, and nowhere else. The CustomResourceDefinition in config/crd, the
// clients in pkg/generated and the zz_generated files beside this one are made
// from these types by hack/update.sh.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=coolops.cn
package v1alpha1
