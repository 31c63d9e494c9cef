// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	v1alpha1apply "coolops.cn/database-manager/pkg/generated/applyconfiguration/coolops/v1alpha1"
)

// statusPatience is how long a status waits that only says how far something is: what
// has passed by then is neither written nor told.
const statusPatience = time.Second

// report writes the status, if it changed, and then tells of what changed in
// it. While members haven't been asked yet it says nothing. It returns how long a
// changed status still has to wait; 0 if there is none.
func (c *Controller) report(ctx context.Context, key cache.ObjectName, snapshot plan.Snapshot, desired plan.Desired, todo plan.Plan, outcome plan.Outcome, now time.Time) (unwritten time.Duration, err error) {
	if todo.IsDeleting {
		return 0, nil
	}
	database := snapshot.Database
	// What was made good won't be planned again: it is told now, whatever
	// becomes of the status.
	c.tellNotices(database, todo, outcome)
	if snapshot.SettlesIn(now) > 0 || snapshot.IsHandingOver(now) {
		return 0, nil
	}
	status := plan.Report(snapshot, desired, todo, outcome, now)
	differs := !equality.Semantic.DeepEqual(status, database.Status)
	if wait := c.patience(database.UID, differs, now); wait > 0 && !isPressing(database.Status, status) {
		return wait, nil
	}
	if differs {
		written, err := c.config.Databases.CoolopsV1alpha1().DatabaseManagers(key.Namespace).ApplyStatus(ctx,
			// The version, too: the API server overlooks a wrong UID here, and a
			// database that was created again would be given its namesake's status.
			v1alpha1apply.DatabaseManager(key.Name, key.Namespace).WithUID(database.UID).WithResourceVersion(database.ResourceVersion).WithStatus(statusFields(status)),
			metav1.ApplyOptions{FieldManager: statusFieldManager, Force: true})
		switch {
		case apierrors.IsNotFound(err):
			return 0, nil
		case apierrors.IsConflict(err):
			return 0, &kit.Wait{After: cacheLag, Reason: "the database has changed since it was read"}
		case err != nil:
			return 0, fmt.Errorf("write the status: %w", err)
		}
		c.caches.OwnWrites.Wrote(key, databaseResource(), written)
		c.patience(database.UID, false, now)
	}
	c.tell(database, status)
	return 0, nil
}

// patience returns how long a status that differs from what is written may still wait;
// 0 if it doesn't, or has waited.
func (c *Controller) patience(database types.UID, differs bool, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	differsSince := since(c.unwrittenSince, database, differs, now)
	if !differs {
		return 0
	}
	return max(0, statusPatience-now.Sub(differsSince))
}

// isPressing tells whether a status is written at once: the first one, and one that
// says that the database can be used again, or can't.
func isPressing(written, status v1alpha1.DatabaseManagerStatus) bool {
	before := meta.FindStatusCondition(written.Conditions, v1alpha1.ConditionReady)
	return before == nil || before.Status != meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Status
}

// tellNotices sends an event for what the plan had to make good, once that is
// done.
func (c *Controller) tellNotices(database *v1alpha1.DatabaseManager, todo plan.Plan, outcome plan.Outcome) {
	if !outcome.IsDone {
		return
	}
	for _, notice := range todo.Notices {
		c.config.Recorder.Eventf(database, nil, corev1.EventTypeWarning, notice.Reason, "Repair", "%s", shorten(notice.Message))
	}
}

// tell sends an event for a transition of Ready.
func (c *Controller) tell(database *v1alpha1.DatabaseManager, status v1alpha1.DatabaseManagerStatus) {
	before := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDegraded) {
		kind = corev1.EventTypeWarning
	}
	c.config.Recorder.Eventf(database, nil, kind, ready.Reason, "Reconcile", "%s", shorten(ready.Message))
}

// shorten cuts a message to what an event takes, 1 KiB.
func shorten(message string) string {
	const limit = 1000
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + " …"
}

// statusFields names every field, also one that is zero, so that what a user reads is a
// number and not a gap; but a lag that isn't known.
func statusFields(status v1alpha1.DatabaseManagerStatus) *v1alpha1apply.DatabaseManagerStatusApplyConfiguration {
	fields := v1alpha1apply.DatabaseManagerStatus().
		WithObservedGeneration(status.ObservedGeneration).
		WithReplicas(status.Replicas).
		WithReadyReplicas(status.ReadyReplicas).
		WithAvailableReplicas(status.AvailableReplicas).
		WithSelector(status.Selector).
		WithCurrentPrimary(status.CurrentPrimary).
		WithCurrentVersion(status.CurrentVersion).
		WithSecretName(status.SecretName)
	for _, member := range status.Members {
		one := v1alpha1apply.MemberStatus().WithName(member.Name).WithRole(member.Role).WithReady(member.Ready)
		if member.Lag != "" {
			one.WithLag(member.Lag)
		}
		fields.WithMembers(one)
	}
	for _, parameter := range status.Config {
		fields.WithConfig(v1alpha1apply.ParameterStatus().
			WithName(parameter.Name).WithChange(parameter.Change).WithInEffect(parameter.InEffect))
	}
	for _, condition := range status.Conditions {
		fields.WithConditions(metav1apply.Condition().
			WithType(condition.Type).WithStatus(condition.Status).
			WithReason(condition.Reason).WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	return fields
}
