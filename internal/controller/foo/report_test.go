// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

func TestReport(t *testing.T) {
	conflict := &problem{reason: v1alpha1.ReasonErrResourceExists, message: "taken"}
	before := v1alpha1.FooStatus{AvailableReplicas: 4, Conditions: []metav1.Condition{synced(3)}}
	for sentence, row := range map[string]struct {
		before     v1alpha1.FooStatus
		deployment *appsv1.Deployment
		done       outcome
		available  int32
		reason     string
		generation int64
		eventType  string
	}{
		"a new Foo that has its Deployment is synced": {
			done: outcome{deployment: newDeployment(t, newFoo()), isDone: true}, reason: v1alpha1.ReasonSynced, generation: 3, eventType: corev1.EventTypeNormal,
		},
		"pods are counted, and no event tells of them": {
			before: before, deployment: newDeployment(t, newFoo(), available(2)), done: outcome{isDone: true},
			available: 2, reason: v1alpha1.ReasonSynced, generation: 3,
		},
		"what was written a moment ago counts before what is cached": {
			before: before, deployment: newDeployment(t, newFoo(), available(2)), done: outcome{deployment: newDeployment(t, newFoo(), available(5)), isDone: true},
			available: 5, reason: v1alpha1.ReasonSynced, generation: 3,
		},
		"a new spec is observed, and no event tells of it": {
			before:     v1alpha1.FooStatus{Conditions: []metav1.Condition{synced(2)}},
			deployment: newDeployment(t, newFoo()), done: outcome{isDone: true}, reason: v1alpha1.ReasonSynced, generation: 3,
		},
		"a conflict is told of": {
			before: before, done: outcome{problem: conflict}, reason: v1alpha1.ReasonErrResourceExists, generation: 3, eventType: corev1.EventTypeWarning,
		},
		"a foreign Deployment's pods aren't counted": {
			before: before, deployment: newDeployment(t, newFoo(), withoutOwner, available(7)), done: outcome{problem: conflict},
			reason: v1alpha1.ReasonErrResourceExists, generation: 3, eventType: corev1.EventTypeWarning,
		},
		"a forged owner's pods aren't counted": {
			before: before, deployment: newDeployment(t, newFoo(), ownedBy("former-uid"), available(7)), done: outcome{problem: conflict},
			reason: v1alpha1.ReasonErrResourceExists, generation: 3, eventType: corev1.EventTypeWarning,
		},
		"a step that failed leaves all as it was": {
			before: before, done: outcome{}, available: 4, reason: v1alpha1.ReasonSynced, generation: 3,
		},
		"a step that failed doesn't keep pods from being counted": {
			before: before, deployment: newDeployment(t, newFoo(), available(1)), done: outcome{}, available: 1, reason: v1alpha1.ReasonSynced, generation: 3,
		},
		"a new Foo whose first step failed has no condition": {done: outcome{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			seen := snapshot{foo: newFoo(), status: row.before, deployment: row.deployment}
			status := report(seen, row.done, noon)
			if status.AvailableReplicas != row.available {
				t.Errorf("%d pods are available, want %d", status.AvailableReplicas, row.available)
			}
			checkCondition(t, status, row.reason, row.generation)
			condition, eventType := transition(row.before, status)
			if eventType != row.eventType || (condition == nil) != (eventType == "") {
				t.Errorf("got an event of the type %q about %v, want %q", eventType, condition, row.eventType)
			}
			if again := report(snapshot{foo: seen.foo, status: status, deployment: row.deployment}, row.done, noon.Add(1)); !equality.Semantic.DeepEqual(again, status) {
				t.Errorf("the same once more gives another status: %+v, was %+v", again, status)
			}
		})
	}
}

// checkCondition checks the condition Synced; with no reason, there is to be none.
func checkCondition(t *testing.T, status v1alpha1.FooStatus, reason string, generation int64) {
	t.Helper()
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)
	if reason == "" {
		if condition != nil {
			t.Errorf("there is a condition: %+v", condition)
		}
		return
	}
	if condition == nil {
		t.Fatal("there is no condition")
	}
	want := metav1.ConditionFalse
	if reason == v1alpha1.ReasonSynced {
		want = metav1.ConditionTrue
	}
	if condition.Reason != reason || condition.Status != want || condition.ObservedGeneration != generation || condition.Message == "" {
		t.Errorf("the condition is %+v, want %s/%s for the generation %d", condition, want, reason, generation)
	}
}

func TestOnlyATransitionMovesTheTime(t *testing.T) {
	before := v1alpha1.FooStatus{Conditions: []metav1.Condition{synced(2)}}
	seen := snapshot{foo: newFoo(), status: before, deployment: newDeployment(t, newFoo())}
	if got := report(seen, outcome{isDone: true}, noon).Conditions[0].LastTransitionTime; !got.Equal(&before.Conditions[0].LastTransitionTime) {
		t.Errorf("it moved to %s", got)
	}
	failed := report(seen, outcome{problem: &problem{reason: v1alpha1.ReasonInvalidSpec, message: "m"}}, noon)
	if got := failed.Conditions[0].LastTransitionTime; !got.Time.Equal(noon) {
		t.Errorf("after a transition it is %s, want %s", got, noon)
	}
	if before.Conditions[0].Status != metav1.ConditionTrue {
		t.Error("the status that was given was changed")
	}
}
