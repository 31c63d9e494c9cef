//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestASickDatabaseCanBeDeleted deletes databases that never worked, or do so no
// more. What they have stays or goes as with healthy ones.
func TestASickDatabaseCanBeDeleted(t *testing.T) {
	t.Parallel()
	for sentence, row := range map[string]struct {
		option func(*v1alpha1.DatabaseManagerSpec)
		sicken func(database, *testing.T)
		reason string
	}{
		"its image can't be pulled":     {withImage("redis:0.0.1"), nil, v1alpha1.ReasonImagePullFailed},
		"its volume is pending":         {withClass("no-such-class"), nil, v1alpha1.ReasonVolumePending},
		"its server ends at each start": {withImage("nginx:1.26"), nil, v1alpha1.ReasonCrashLooping},
		"its Secret has no password":    {durable, database.spoilSecret, v1alpha1.ReasonSecretMissing},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			d := database{engine: anyEngine(), namespace: newNamespace(t), name: "orders"}
			d.create(t, row.option)
			if row.sicken != nil {
				d.waitReady(t)
				row.sicken(d, t)
			}
			d.waitFor(t, 3*patience, row.reason)
			d.delete(t, d.retained()...)
		})
	}
}

func (d database) spoilSecret(t *testing.T) {
	t.Helper()
	secrets := env.kube.CoreV1().Secrets(d.namespace)
	secret, err := secrets.Get(t.Context(), d.stem()+"-admin", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = nil
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestANamespaceGoesWithItsDatabases deletes a namespace with a healthy and a
// sick one. Its claims go with it, whatever the policy.
func TestANamespaceGoesWithItsDatabases(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	healthy := database{engine: anyEngine(), namespace: namespace, name: "orders"}
	healthy.create(t, durable)
	sick := database{engine: anyEngine(), namespace: namespace, name: "sick"}
	sick.create(t, withImage("redis:0.0.1"))
	healthy.waitReady(t)
	sick.waitFor(t, 3*patience, v1alpha1.ReasonImagePullFailed)
	namespaces := env.kube.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the namespace gone", func(ctx context.Context) error {
		if _, err := namespaces.Get(ctx, namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is still there"))
		}
		return nil
	})
}

// TestADatabaseThatIsDeletedWithoutTheOperatorIsGone deletes one while there is
// no operator; the one that comes back makes nothing of it again. It runs beside
// no other test: all have the same operator.
func TestADatabaseThatIsDeletedWithoutTheOperatorIsGone(t *testing.T) {
	d := database{engine: anyEngine(), namespace: newNamespace(t), name: "orders"}
	d.create(t, durable)
	d.waitReady(t)
	replicas := scaleOperator(t, 0)
	t.Cleanup(func() {
		if t.Failed() {
			scaleOperatorBack(t, replicas)
		}
	})
	d.delete(t, d.retained()...)
	scaleOperatorBack(t, replicas)
	begun := time.Now()
	// Another one shows that the operator has looked at everything.
	other := database{engine: anyEngine(), namespace: d.namespace, name: "other"}
	other.create(t)
	other.waitReady(t)
	record(t, "an operator that comes back to the next database ready", time.Since(begun))
	d.waitGone(t, d.retained()...)
}
