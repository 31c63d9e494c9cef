// SPDX-License-Identifier: Apache-2.0

package objects

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
)

// disruptionBudget lets one member at a time be evicted, by whomever, and one that
// isn't ready at any time, since it is of no use where it is.
func (r *rendering) disruptionBudget() *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return policyv1apply.PodDisruptionBudget(r.stem(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithSpec(policyv1apply.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())))
}
