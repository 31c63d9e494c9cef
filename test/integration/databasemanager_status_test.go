//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestAStatusSaysWhatIsWrongAndWhatIsAsked(t *testing.T) {
	startOperator(t)
	for sentence, row := range map[string]struct {
		option  func(*v1alpha1.DatabaseManagerSpec)
		reason  string
		message string
	}{
		"where no node takes the pod": {func(*v1alpha1.DatabaseManagerSpec) {}, v1alpha1.ReasonPodUnschedulable, "No node takes Pod db-"},
		"where no node takes the first of three": {
			func(spec *v1alpha1.DatabaseManagerSpec) { spec.Replicas = new(int32(3)) },
			v1alpha1.ReasonPodUnschedulable, "No node takes Pod db-0",
		},
		"where the version isn't known": {
			func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "0.9" },
			v1alpha1.ReasonInvalidSpec, `spec.version is "0.9"; known versions of redis are 7.0, 8.0`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			newDatabase(t, namespace, "orders", "db", row.option)
			ready := awaitReady(t, namespace, "orders", row.reason)
			if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, row.message) {
				t.Errorf("Ready is %s: %s; want False, with %q", ready.Status, ready.Message, row.message)
			}
			database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(t.Context(), "orders", metav1.GetOptions{})
			if err != nil {
				t.Fatalf("read the database: %v", err)
			}
			if !meta.IsStatusConditionTrue(database.Status.Conditions, v1alpha1.ConditionDegraded) ||
				!meta.IsStatusConditionFalse(database.Status.Conditions, v1alpha1.ConditionTransportEncrypted) {
				t.Errorf("conditions are %v", database.Status.Conditions)
			}
			if database.Status.AvailableReplicas != 0 || database.Status.ObservedGeneration != database.Generation {
				t.Errorf("status is %+v", database.Status)
			}
			awaitEvent(t, namespace, row.reason)
		})
	}
}

// awaitEvent waits for an event about the database, and checks that it is one
// event and not a stream of them.
func awaitEvent(t *testing.T, namespace, reason string) {
	t.Helper()
	await(t, "an event "+reason, func(ctx context.Context) error {
		list, err := env.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var found []eventsv1.Event
		for _, event := range list.Items {
			if event.Regarding.Kind == "DatabaseManager" && event.Reason == reason {
				found = append(found, event)
			}
		}
		if len(found) != 1 || found[0].Series != nil {
			return fmt.Errorf("there are %v", found)
		}
		return nil
	})
}

func TestASpecThatCantBeRenderedChangesNothingAndHealsWithTheSpec(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "0.9" })
	awaitReady(t, namespace, "orders", v1alpha1.ReasonInvalidSpec)
	if made := childNames(children(t, namespace)); len(made) > 0 {
		t.Errorf("made: %v", made)
	}
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "" })
	awaitUnscheduled(t, namespace, "orders")
	workload := children(t, namespace)["Deployment db"]
	if resolved := workload.GetAnnotations()[v1alpha1.AnnotationResolvedVersion]; resolved != "8.0" {
		t.Errorf("the resolved version is recorded as %q", resolved)
	}
}

func TestAStatusThatIsDeletedIsWrittenAgain(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db")
	awaitUnscheduled(t, namespace, "orders")
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	await(t, "delete the status", func(ctx context.Context) error {
		database, err := databases.Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		database.Status = v1alpha1.DatabaseManagerStatus{}
		_, err = databases.UpdateStatus(ctx, database, metav1.UpdateOptions{})
		return err
	})
	awaitUnscheduled(t, namespace, "orders")
}
