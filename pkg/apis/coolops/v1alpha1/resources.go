// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ToCore returns the requirements in the form that a container takes. A nil
// receiver gives empty requirements.
func (r *ResourceRequirements) ToCore() corev1.ResourceRequirements {
	if r == nil {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: r.Requests.ToCore(), Limits: r.Limits.ToCore()}
}

// ToCore returns the amounts that are set, by resource name; nil if there are
// none. The quantities are copies.
func (a *ResourceAmounts) ToCore() corev1.ResourceList {
	if a == nil || *a == (ResourceAmounts{}) {
		return nil
	}
	list := corev1.ResourceList{}
	if a.CPU != nil {
		list[corev1.ResourceCPU] = a.CPU.DeepCopy()
	}
	if a.Memory != nil {
		list[corev1.ResourceMemory] = a.Memory.DeepCopy()
	}
	if a.EphemeralStorage != nil {
		list[corev1.ResourceEphemeralStorage] = a.EphemeralStorage.DeepCopy()
	}
	return list
}

// DeletesWhenScaled tells whether the volume of a member goes when the member is
// scaled away.
func (s *StorageSpec) DeletesWhenScaled() bool {
	return s.Retention != nil && s.Retention.WhenScaled == RetentionPolicyDelete
}

// DeletesWithDatabase tells whether the volumes go when the database is deleted.
func (s *StorageSpec) DeletesWithDatabase() bool {
	return s.Retention != nil && s.Retention.WhenDeleted == RetentionPolicyDelete
}
