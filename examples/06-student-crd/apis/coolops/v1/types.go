// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Student is who learns at a school. Nothing acts on it: it is stored, and read.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=students,singular=student,shortName=stu,scope=Namespaced
// +kubebuilder:printcolumn:name="STUDENT",type=string,JSONPath=`.spec.name`,description="Name of the student."
// +kubebuilder:printcolumn:name="SCHOOL",type=string,JSONPath=`.spec.school`,description="Where the student learns."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Student struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is known about the student.
	// +required
	Spec StudentSpec `json:"spec"`
}

// StudentSpec is what is known about a student.
type StudentSpec struct {
	// name is the student's name as people write it, 1 to 64 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// school is where the student learns, at most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	School string `json:"school,omitempty"`
}

// StudentList is a list of Students.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type StudentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Student `json:"items"`
}
