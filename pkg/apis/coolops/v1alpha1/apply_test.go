// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	applyv1alpha1 "coolops.cn/database-manager/pkg/generated/applyconfiguration/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
)

// TestTheFakeClientsetMergesListsByKey shows that the schema reached the
// generated code: without it the fake replaces a list as a whole.
func TestTheFakeClientsetMergesListsByKey(t *testing.T) {
	stored := &v1alpha1.DatabaseManager{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"}}
	databases := fake.NewClientset(stored).CoolopsV1alpha1().DatabaseManagers("shop")
	for manager, member := range map[string]string{"one": "orders-db-0", "two": "orders-db-1"} {
		status := applyv1alpha1.DatabaseManager("orders", "shop").WithStatus(applyv1alpha1.DatabaseManagerStatus().
			WithMembers(applyv1alpha1.MemberStatus().WithName(member)))
		if _, err := databases.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			t.Fatalf("apply the status as %s: %v", manager, err)
		}
	}
	got, err := databases.Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the database: %v", err)
	}
	if len(got.Status.Members) != 2 {
		t.Errorf("got the members %+v, want both", got.Status.Members)
	}
}
