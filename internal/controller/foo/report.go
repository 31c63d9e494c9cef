// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// messageSynced is the message of the condition Synced when it is True, and of
// its event; the words are those of kubernetes/sample-controller.
const messageSynced = "Foo synced successfully"

// outcome is what became of a plan.
type outcome struct {
	// deployment is the Foo's Deployment as it was written; nil if it wasn't.
	deployment *appsv1.Deployment
	// problem is what needs help; nil otherwise.
	problem *problem
	// isDone is true if all of the plan was carried out.
	isDone bool
}

// report says how a Foo is, in the form of its status. What passes by trying
// again leaves the condition as it was.
func report(seen snapshot, done outcome, now time.Time) v1alpha1.FooStatus {
	status := v1alpha1.FooStatus{Conditions: slices.Clone(seen.status.Conditions)}
	switch {
	case done.deployment != nil:
		status.AvailableReplicas = done.deployment.Status.AvailableReplicas
	case seen.deployment != nil && metav1.IsControlledBy(seen.deployment, seen.foo):
		status.AvailableReplicas = seen.deployment.Status.AvailableReplicas
	case !done.isDone && done.problem == nil:
		// It couldn't be found out.
		status.AvailableReplicas = seen.status.AvailableReplicas
	}
	synced := metav1.Condition{
		Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonSynced, Message: messageSynced,
		ObservedGeneration: seen.foo.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case done.problem != nil:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, done.problem.reason, done.problem.message
	case !done.isDone:
		return status
	}
	meta.SetStatusCondition(&status.Conditions, synced)
	return status
}

// transition returns the condition that is to be told of in an event, and the
// event's type; nil if it says what it said before.
func transition(before, after v1alpha1.FooStatus) (condition *metav1.Condition, eventType string) {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionSynced)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionSynced)
	switch {
	case is == nil, was != nil && was.Status == is.Status && was.Reason == is.Reason:
		return nil, ""
	case is.Status == metav1.ConditionTrue:
		return is, corev1.EventTypeNormal
	default:
		return is, corev1.EventTypeWarning
	}
}
