// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Student of the articles, in the group coolops.io.
//
// The CustomResourceDefinition in examples/06-student-crd/crd.yaml, the client in
// examples/06-student-crd/generated and the zz_generated files beside this one
// are made from these types by hack/update.sh.
//
// +k8s:deepcopy-gen=package
// +groupName=coolops.io
package v1
