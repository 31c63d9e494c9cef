// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	databasesfake "coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
)

// TestEverySecretIsGivenAPasswordOfItsOwn makes the Secrets of two databases.
func TestEverySecretIsGivenAPasswordOfItsOwn(t *testing.T) {
	client := fake.NewClientset()
	controller := &Controller{config: Config{Kubernetes: client}, caches: caches{View: kit.NewView()}}
	passwords := map[string]string{}
	for _, name := range []string{"a-auth", "a-admin", "b-auth", "b-admin"} {
		e := &execution{Controller: controller, key: cache.NewObjectName("shop", name)}
		err := e.create(t.Context(), plan.Child{
			Ref:      plan.Ref{Kind: plan.KindSecret, Name: name},
			Fields:   map[string]any{"metadata": map[string]any{"name": name, "namespace": "shop"}},
			Template: map[string]string{plan.PasswordKey: plan.PasswordMark},
		})
		if err != nil {
			t.Fatal(err)
		}
		secret, err := client.CoreV1().Secrets("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		password := string(secret.Data[plan.PasswordKey])
		// 26 of 32 characters are 130 bits.
		if len(password) < 26 {
			t.Errorf("the password of %s has %d characters", name, len(password))
		}
		if other, isUsed := passwords[password]; isUsed {
			t.Errorf("%s has the password of %s", name, other)
		}
		passwords[password] = name
	}
}

// TestNothingIsMadeForADatabaseThatIsNotTheOneThatWasRead has the database that
// a plan was made for be gone, going, or another one of its name by now.
func TestNothingIsMadeForADatabaseThatIsNotTheOneThatWasRead(t *testing.T) {
	const read = types.UID("read")
	database := func(uid types.UID, isDeleting bool) *v1alpha1.DatabaseManager {
		d := &v1alpha1.DatabaseManager{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: uid}}
		if isDeleting {
			d.DeletionTimestamp = new(metav1.Now())
		}
		return d
	}
	child := plan.Child{Ref: plan.Ref{Kind: plan.KindStatefulSet, Name: "db"}, Fields: map[string]any{"metadata": map[string]any{"name": "db", "namespace": "shop"}}}
	for sentence, row := range map[string]struct {
		there  []runtime.Object
		isMade bool
	}{
		"the one that was read":    {[]runtime.Object{database(read, false)}, true},
		"none any more":            {nil, false},
		"one that is going":        {[]runtime.Object{database(read, true)}, false},
		"another one of that name": {[]runtime.Object{database("another", false)}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset()
			controller := &Controller{config: Config{Kubernetes: client, Databases: databasesfake.NewClientset(row.there...)}, caches: caches{View: kit.NewView()}}
			snapshot := plan.Snapshot{Database: database(read, false)}
			_, err := controller.execute(t.Context(), cache.NewObjectName("shop", "orders"), snapshot, plan.Desired{}, plan.Plan{Actions: []plan.Action{plan.Create{Child: child}}})
			var stalled *kit.Stalled
			if isMade := err == nil && len(client.Actions()) == 1; isMade != row.isMade || !isMade && (!errors.As(err, &stalled) || len(client.Actions()) > 0) {
				t.Errorf("the requests are %v, the error %v; made: want %t", client.Actions(), err, row.isMade)
			}
		})
	}
}
