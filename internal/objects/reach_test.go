// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestNobodyReachesAMemberButItsNamespaceAndTheOperator where the spec names nobody.
func TestNobodyReachesAMemberButItsNamespaceAndTheOperator(t *testing.T) {
	desired, problem := Render(anInput(func(in *Input) { in.OperatorNamespace, in.Database.Spec.NetworkPolicy = "operators", nil }))
	if problem != nil {
		t.Fatal(problem)
	}
	var policy networkingv1.NetworkPolicy
	for _, child := range desired.Children {
		if child.Kind != plan.KindNetworkPolicy {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Fields, &policy); err != nil {
			t.Fatal(err)
		}
	}
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentDatabase, v1alpha1.LabelStem: desired.Workload().Name}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(engine{}.Port()))}},
			From: []networkingv1.NetworkPolicyPeer{
				{PodSelector: &metav1.LabelSelector{}},
				{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "operators"}},
					PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.ManagedByValue, v1alpha1.LabelComponent: v1alpha1.ComponentOperator}},
				},
			},
		}},
	}
	if !equality.Semantic.DeepEqual(policy.Spec, want) {
		t.Errorf("it admits\n%+v\nwant\n%+v", policy.Spec, want)
	}
}

// TestWhatOpensAVolumeStaysAsLongAsTheVolume: without the passwords, and without the
// topology, nobody can use it.
func TestWhatOpensAVolumeStaysAsLongAsTheVolume(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*Input)
		goes   bool // with the database
	}{
		"it stays with a volume that does": {withStorage, false},
		"it goes with a volume that does": {
			func(in *Input) {
				withStorage(in)
				in.Database.Spec.Storage.Retention = &v1alpha1.StorageRetention{WhenDeleted: v1alpha1.RetentionPolicyDelete}
			}, true,
		},
		"it goes where there is no volume": {func(*Input) {}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			desired, problem := Render(anInput(row.change))
			if problem != nil {
				t.Fatal(problem)
			}
			found := 0
			for _, child := range desired.Children {
				if child.Kind != plan.KindSecret && child.Name != plan.TopologyName(desired.Workload().Name) {
					continue
				}
				found++
				owners, _, err := unstructured.NestedSlice(child.Fields, "metadata", "ownerReferences")
				if err != nil || (len(owners) > 0) != row.goes {
					t.Errorf("%s has the owners %v (%v)", child, owners, err)
				}
			}
			if found != 3 {
				t.Errorf("%d children open it, want two Secrets and the topology", found)
			}
		})
	}
}
