// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	v1alpha1apply "coolops.cn/database-manager/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
)

// tell writes the status, if it changed, and then sends an event if the
// condition did.
func (c *Controller) tell(ctx context.Context, key cache.ObjectName, seen snapshot, done outcome, now time.Time) error {
	status := report(seen, done, now)
	if equality.Semantic.DeepEqual(status, seen.status) {
		return nil
	}
	written, err := c.writeStatus(ctx, seen.foo, status)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return &kit.Wait{After: cacheLag, Reason: "the Foo has changed since it was read"}
	case err != nil:
		return fmt.Errorf("write the status: %w", err)
	}
	c.caches.OwnWrites.Wrote(key, fooResource(), written)
	logStatus(ctx, status)
	if condition, eventType := transition(seen.status, status); condition != nil {
		c.config.Recorder.Eventf(seen.foo, nil, eventType, condition.Reason, "Reconcile", "%s", shorten(condition.Message))
	}
	return nil
}

func logStatus(ctx context.Context, status v1alpha1.FooStatus) {
	reason := "unknown"
	if synced := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced); synced != nil {
		reason = synced.Reason
	}
	klog.FromContext(ctx).V(2).Info("Wrote the status", "availableReplicas", status.AvailableReplicas, "reason", reason)
}

// writeStatus applies the status. The articles' own CustomResourceDefinition,
// which users may have applied in the place of ours, has no conditions. An apply
// that names a field which isn't declared is refused, by a plain 500 as many
// other things are; a patch has it dropped, and the answer shows that.
func (c *Controller) writeStatus(ctx context.Context, foo *v1alpha1.Foo, status v1alpha1.FooStatus) (*v1alpha1.Foo, error) {
	foos := c.config.Foos.SamplecontrollerV1alpha1().Foos(foo.Namespace)
	written, err := foos.ApplyStatus(ctx, statusFields(foo, status.AvailableReplicas, ours(status.Conditions)),
		metav1.ApplyOptions{FieldManager: statusFieldManager, Force: true})
	if !isServerError(err) {
		return written, err
	}
	// Of a list, a patch replaces all.
	body, err := json.Marshal(statusFields(foo, status.AvailableReplicas, status.Conditions))
	if err != nil {
		return nil, err
	}
	written, err = foos.Patch(ctx, foo.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: statusFieldManager, FieldValidation: metav1.FieldValidationIgnore}, "status")
	if err == nil && len(written.Status.Conditions) == 0 {
		c.unstored.remember(foo.UID, ours(status.Conditions))
	}
	return written, err
}

// ours returns the conditions that we own: Synced, if there is one.
func ours(conditions []metav1.Condition) []metav1.Condition {
	if synced := meta.FindStatusCondition(conditions, v1alpha1.ConditionSynced); synced != nil {
		return []metav1.Condition{*synced}
	}
	return nil
}

// statusFields names every field of the status, also one that is zero, so that
// what a user reads is a number and not a gap. It is pinned to the version that
// was read: the UID alone wouldn't do, since in a write of a custom
// resource's status the API server overlooks a wrong one, and a Foo that was
// deleted and created again would be given the status of its namesake.
func statusFields(foo *v1alpha1.Foo, availableReplicas int32, conditions []metav1.Condition) *v1alpha1apply.FooApplyConfiguration {
	status := v1alpha1apply.FooStatus().WithAvailableReplicas(availableReplicas)
	for _, condition := range conditions {
		status.WithConditions(metav1apply.Condition().
			WithType(condition.Type).WithStatus(condition.Status).
			WithReason(condition.Reason).WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	return v1alpha1apply.Foo(foo.Name, foo.Namespace).WithUID(foo.UID).WithResourceVersion(foo.ResourceVersion).WithStatus(status)
}

func isServerError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// unstored holds the conditions that the API server has no place for, by the
// UID of their Foo, so that they aren't written, and told of, again and again.
type unstored struct {
	mu         sync.Mutex
	conditions map[types.UID][]metav1.Condition
}

func newUnstored() *unstored { return &unstored{conditions: map[types.UID][]metav1.Condition{}} }

func (u *unstored) remember(foo types.UID, conditions []metav1.Condition) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conditions[foo] = conditions
}

func (u *unstored) forget(foo types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conditions, foo)
}

// recall returns a Foo's status, with the conditions that couldn't be stored in
// the place of those that aren't there.
func (u *unstored) recall(foo *v1alpha1.Foo) v1alpha1.FooStatus {
	status := foo.Status
	if len(status.Conditions) > 0 {
		u.forget(foo.UID)
		return status
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	status.Conditions = u.conditions[foo.UID]
	return status
}

// shorten cuts a message to what an event takes, 1 KiB.
func shorten(message string) string {
	const limit = 1000
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + " …"
}
