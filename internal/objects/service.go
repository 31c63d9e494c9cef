// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// service is where applications connect to. While there is one member it
// doesn't ask for a role, so that the member is reachable with the operator down.
func (r *rendering) service() *corev1apply.ServiceApplyConfiguration {
	asked := v1alpha1.ServiceSpec{}
	if r.Database.Spec.Service != nil {
		asked = *r.Database.Spec.Service
	}
	return corev1apply.Service(r.stem(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithAnnotations(texts(asked.Annotations)).
		WithOwnerReferences(r.owner()).
		WithSpec(corev1apply.ServiceSpec().
			WithType(corev1.ServiceType(cmp.Or(asked.Type, v1alpha1.ServiceTypeClusterIP))).
			WithSelector(r.selectorOf(v1alpha1.MemberRolePrimary)).
			WithPorts(r.servicePort()))
}

// readOnlyService leads to the replicas that have the primary's data.
func (r *rendering) readOnlyService() *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(r.readOnlyServiceName(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithSpec(corev1apply.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(r.selectorOf(v1alpha1.MemberRoleReplica)).
			WithPorts(r.servicePort()))
}

// selectorOf selects members of one role, where there are several.
func (r *rendering) selectorOf(role v1alpha1.MemberRole) map[string]string {
	selector := r.selector()
	if r.isReplicated() {
		selector[v1alpha1.LabelRole] = string(role)
	}
	return selector
}

// membersService gives each member a name of its own, ready or not.
func (r *rendering) membersService() *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(r.membersServiceName(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithSpec(corev1apply.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true).
			WithSelector(r.selector()).
			WithPorts(r.servicePort()))
}

func (r *rendering) servicePort() *corev1apply.ServicePortApplyConfiguration {
	return corev1apply.ServicePort().
		WithName(string(r.Engine.Type())).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(r.Engine.Port())
}
