// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bounds that both the schema below and the controller rely on.
const (
	// MaxDeploymentNameLength is the greatest length of spec.deploymentName, in
	// characters. A name has at most 253, and that of a Deployment's ReplicaSet
	// adds a dash and a hash of up to 10: with a longer one the Deployment would
	// be made, and never get a pod.
	MaxDeploymentNameLength = 242

	// MinReplicas and MaxReplicas bound spec.replicas, and DefaultReplicas is
	// what it means to leave it out.
	MinReplicas     = 1
	MaxReplicas     = 10
	DefaultReplicas = 1
)

// Foo is a Deployment of nginx with a number of pods: the smallest resource that
// shows what a controller does.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only; please get an approval from Kubernetes API reviewers if you're trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups"
// +kubebuilder:resource:path=foos,singular=foo,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DEPLOYMENT",type=string,JSONPath=`.spec.deploymentName`,description="Name of the Deployment."
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Pods asked for."
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.availableReplicas`,description="Pods that are available."
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].reason`,description="Reason of the condition Synced."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. A name of more than 63
	// characters gives the condition Synced=False with the reason InvalidSpec,
	// since it is the value of a label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the Deployment that is asked for.
	// +optional
	Spec FooSpec `json:"spec,omitempty"`

	// status is what the operator last saw of the Deployment. It is a report:
	// nothing is decided from it, and it may be deleted at any time.
	// +optional
	Status FooStatus `json:"status,omitempty"`
}

// FooSpec is the Deployment that is asked for. As in the articles, no field is
// required: what is missing ends in a default or in a condition.
type FooSpec struct {
	// deploymentName is the name of the Deployment: lower-case letters, digits,
	// '-' and '.', beginning and ending with a letter or digit, at most 242
	// characters. While it is empty nothing is made, and the condition Synced is
	// False with the reason InvalidSpec. When it changes, a Deployment of the new
	// name is made and the one of the old name is deleted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.size() <= 242`,message=`must have at most 242 characters, because the names of the Deployment's ReplicaSets begin with it: choose a shorter name`
	// +kubebuilder:validation:XValidation:rule=`self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message=`must be lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit: choose a name such as example-foo`
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is the number of pods, 1 to 10; default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is what the operator last saw of the Deployment.
type FooStatus struct {
	// availableReplicas is the number of pods of the Deployment that are
	// available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// conditions has one element, Synced.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FooList is a list of Foos.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Foo `json:"items"`
}
