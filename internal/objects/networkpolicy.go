// SPDX-License-Identifier: Apache-2.0

package objects

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1apply "k8s.io/client-go/applyconfigurations/networking/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// networkPolicy admits to the engine's port the pods of the same namespace,
// which is the boundary of trust, the operator, and whom the spec names.
func (r *rendering) networkPolicy() *networkingv1apply.NetworkPolicyApplyConfiguration {
	return networkingv1apply.NetworkPolicy(r.stem(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithSpec(networkingv1apply.NetworkPolicySpec().
			WithPodSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(networkingv1apply.NetworkPolicyIngressRule().
				WithPorts(networkingv1apply.NetworkPolicyPort().
					WithProtocol(corev1.ProtocolTCP).
					WithPort(intstr.FromInt32(r.Engine.Port()))).
				WithFrom(r.clients()...)))
}

// clients are those who may reach the members.
func (r *rendering) clients() []*networkingv1apply.NetworkPolicyPeerApplyConfiguration {
	clients := []*networkingv1apply.NetworkPolicyPeerApplyConfiguration{
		networkingv1apply.NetworkPolicyPeer().WithPodSelector(metav1apply.LabelSelector()),
	}
	if r.OperatorNamespace != "" {
		clients = append(clients, networkingv1apply.NetworkPolicyPeer().
			WithNamespaceSelector(metav1apply.LabelSelector().WithMatchLabels(map[string]string{
				corev1.LabelMetadataName: r.OperatorNamespace,
			})).
			WithPodSelector(metav1apply.LabelSelector().WithMatchLabels(map[string]string{
				v1alpha1.LabelName:      v1alpha1.ManagedByValue,
				v1alpha1.LabelComponent: v1alpha1.ComponentOperator,
			})))
	}
	if policy := r.Database.Spec.NetworkPolicy; policy != nil {
		for _, peer := range policy.From {
			clients = append(clients, client(peer))
		}
	}
	return clients
}

func client(peer v1alpha1.NetworkPolicyPeer) *networkingv1apply.NetworkPolicyPeerApplyConfiguration {
	rendered := networkingv1apply.NetworkPolicyPeer()
	if peer.PodSelector != nil {
		rendered.WithPodSelector(selectorOf(peer.PodSelector))
	}
	if peer.NamespaceSelector != nil {
		rendered.WithNamespaceSelector(selectorOf(peer.NamespaceSelector))
	}
	if peer.IPBlock != nil {
		rendered.WithIPBlock(networkingv1apply.IPBlock().WithCIDR(peer.IPBlock.CIDR).WithExcept(peer.IPBlock.Except...))
	}
	return rendered
}

func selectorOf(selector *v1alpha1.LabelsSelector) *metav1apply.LabelSelectorApplyConfiguration {
	rendered := metav1apply.LabelSelector()
	for key, value := range selector.MatchLabels {
		rendered.WithMatchLabels(map[string]string{key: string(value)})
	}
	return rendered
}
