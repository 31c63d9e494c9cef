// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "coolops.cn/database-manager/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
)

// TestConditionsOfSeveralOwnersStayApart shows that the schema reached the
// generated code: without it the fake replaces a list as a whole.
func TestConditionsOfSeveralOwnersStayApart(t *testing.T) {
	stored := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "example-foo", Namespace: "shop"}}
	foos := fake.NewClientset(stored).SamplecontrollerV1alpha1().Foos("shop")
	for manager, condition := range map[string]string{"one": v1alpha1.ConditionSynced, "two": "Theirs"} {
		status := applyv1alpha1.Foo("example-foo", "shop").WithStatus(applyv1alpha1.FooStatus().
			WithConditions(metav1apply.Condition().WithType(condition).WithStatus(metav1.ConditionTrue).WithReason(v1alpha1.ReasonSynced)))
		if _, err := foos.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			t.Fatalf("apply the status as %s: %v", manager, err)
		}
	}
	got, err := foos.Get(t.Context(), "example-foo", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the Foo: %v", err)
	}
	if len(got.Status.Conditions) != 2 {
		t.Errorf("got the conditions %+v, want both", got.Status.Conditions)
	}
}
