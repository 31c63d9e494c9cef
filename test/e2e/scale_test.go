//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	applied "coolops.cn/database-manager/pkg/generated/applyconfiguration/coolops/v1alpha1"
)

// TestAScaleIsLedByOthers has an autoscaler say how many members there are, and a
// spec that is applied again without a number not say otherwise.
func TestAScaleIsLedByOthers(t *testing.T) {
	t.Parallel()
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			l := beginReplicated(t, e, 1, "")
			l.app.write(t, "value")
			scaler := &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Name: l.name},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
						APIVersion: v1alpha1.GroupVersion.String(), Kind: "DatabaseManager", Name: l.name,
					},
					MinReplicas: new(int32(3)), MaxReplicas: 4,
				},
			}
			if _, err := env.kube.AutoscalingV2().HorizontalPodAutoscalers(l.namespace).Create(t.Context(), scaler, metav1.CreateOptions{}); err != nil {
				t.Fatalf("create an autoscaler: %v", err)
			}
			l.waitWhole(t, 3)
			l.app.expect(t, "after an autoscaler's scale", "value")
			l.appliesAgain(t)
			l.waitWhole(t, 3)
			if err := env.kube.AutoscalingV2().HorizontalPodAutoscalers(l.namespace).Delete(t.Context(), scaler.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the autoscaler: %v", err)
			}
			if err := localcluster(t.Context(), "kubectl", "--", "--namespace="+l.namespace, "scale", "databasemanager", l.name, "--replicas=2"); err != nil {
				t.Fatal(err)
			}
			l.waitWhole(t, 2)
		})
	}
}

// appliesAgain applies the spec without a number of members, and with something
// that changes.
func (l life) appliesAgain(t *testing.T) {
	t.Helper()
	spec := applied.DatabaseManagerSpec().WithDeploymentName(l.stem()).WithDBType(l.engine.name).
		WithPodAnnotations(map[string]v1alpha1.AnnotationValue{"example.com/applied": "again"})
	_, err := l.client().Apply(t.Context(), applied.DatabaseManager(l.name, l.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: "e2e", Force: true})
	if err != nil {
		t.Fatalf("apply the spec again: %v", err)
	}
}
