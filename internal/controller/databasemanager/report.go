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
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	v1alpha1apply "coolops.cn/database-manager/pkg/generated/applyconfiguration/coolops/v1alpha1"
)

// report writes the status, if it changed, and then tells of what changed in
// it. While members haven't been asked yet it says nothing.
func (c *Controller) report(ctx context.Context, key cache.ObjectName, snapshot plan.Snapshot, desired plan.Desired, todo plan.Plan, outcome plan.Outcome, now time.Time) error {
	if todo.IsDeleting {
		return nil
	}
	database := snapshot.Database
	// What was made good won't be planned again: it is told now, whatever
	// becomes of the status.
	c.tellNotices(database, todo, outcome)
	if snapshot.SettlesIn(now) > 0 || snapshot.IsHandingOver(now) {
		return nil
	}
	status := plan.Report(snapshot, desired, todo, outcome, now)
	if !equality.Semantic.DeepEqual(status, database.Status) {
		written, err := c.config.Databases.CoolopsV1alpha1().DatabaseManagers(key.Namespace).ApplyStatus(ctx,
			// The version, too: the API server overlooks a wrong UID here, and a
			// database that was created again would be given its namesake's status.
			v1alpha1apply.DatabaseManager(key.Name, key.Namespace).WithUID(database.UID).WithResourceVersion(database.ResourceVersion).WithStatus(statusFields(status)),
			metav1.ApplyOptions{FieldManager: statusFieldManager, Force: true})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err):
			return &kit.Wait{After: cacheLag, Reason: "the database has changed since it was read"}
		case err != nil:
			return fmt.Errorf("write the status: %w", err)
		}
		c.caches.OwnWrites.Wrote(key, databaseResource(), written)
	}
	c.tell(database, status)
	return nil
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
