// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// evictionRetry is how long to wait where a disruption budget doesn't permit
// an eviction now.
const evictionRetry = 10 * time.Second

// actionLimit is how long one change to an engine may take. The leader's lease
// has to be valid for longer, or else another leader could act meanwhile.
const actionLimit = 3 * time.Second

// execution carries out the plan for one database. It is the only place that
// writes children.
type execution struct {
	*Controller
	key      cache.ObjectName
	snapshot plan.Snapshot
	claimant plan.Claimant
	// confirmedAt is when a live read has shown, in this pass, that the database
	// exists; zero if none has.
	confirmedAt time.Time
}

// execute carries out the actions in their order, up to the first that fails.
// One that is refused, and isn't needed by the others, doesn't keep them from
// being carried out.
func (c *Controller) execute(ctx context.Context, key cache.ObjectName, snapshot plan.Snapshot, desired plan.Desired, todo plan.Plan) (plan.Outcome, error) {
	e := &execution{Controller: c, key: key, snapshot: snapshot, claimant: snapshot.Claimant(desired.Topology.DataID)}
	var aside *plan.Problem
	for _, action := range todo.Actions {
		err := e.confirmExistence(ctx, action)
		if err == nil {
			err = e.carryOut(ctx, action)
		}
		var problem *plan.Problem
		if errors.As(err, &problem) && problem.IsAside {
			aside = problem
			continue
		}
		if err != nil {
			return outcomeOf(action, err)
		}
		klog.FromContext(ctx).V(detailOf(action)).Info("Carried out", "action", action.String())
	}
	return plan.Outcome{Problem: aside, IsDone: todo.Problem == nil}, nil
}

// detailOf is the level of detail of the log at which an action belongs there:
// 0 if it changed something.
func detailOf(action plan.Action) int {
	switch action.(type) {
	case plan.UseClaim, plan.ConfirmGone, plan.ConfirmStopped, plan.FindClaim, plan.FindSecret:
		return 2
	default:
		return 0
	}
}

// outcomeOf tells what a user can help with, which goes into the status, from
// what passes by trying again.
func outcomeOf(action plan.Action, err error) (plan.Outcome, error) {
	var problem *plan.Problem
	var stalled *kit.Stalled
	switch {
	case errors.As(err, &problem):
		return plan.Outcome{Problem: problem}, nil
	case errors.As(err, &stalled):
		return plan.Outcome{}, stalled
	case apierrors.IsTooManyRequests(err):
		return plan.Outcome{}, &kit.Wait{After: evictionRetry, Reason: err.Error()}
	case apierrors.IsConflict(err):
		return plan.Outcome{}, &kit.Wait{After: cacheLag, Reason: err.Error()}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return plan.Outcome{}, &kit.Stalled{Reason: "the namespace is being deleted"}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return plan.Outcome{Problem: &plan.Problem{
			Reason:  v1alpha1.ReasonStepRefused,
			Message: fmt.Sprintf("The API server refused to %s: %s", action, err),
		}}, err
	default:
		return plan.Outcome{}, fmt.Errorf("%s: %w", action, err)
	}
}

// existenceLasts is how long a database that was there is taken to be there still,
// when objects are made or taken over that nothing collects.
const existenceLasts = time.Second

// confirmExistence looks, live, whether the database is still there, before the
// first child is made, and a moment before objects are made or taken over that nothing
// collects: a cache that hasn't seen the database go would leave them behind.
func (e *execution) confirmExistence(ctx context.Context, action plan.Action) error {
	var isStray bool
	switch action := action.(type) {
	case plan.Create:
		isStray = action.Child.IsRetained
	case plan.UseClaim, plan.Adopt:
		isStray = true
	default:
		return nil
	}
	isRecent := time.Since(e.confirmedAt) < existenceLasts
	if isRecent || !e.confirmedAt.IsZero() && !isStray {
		return nil
	}
	asked := time.Now()
	database, err := e.config.Databases.CoolopsV1alpha1().DatabaseManagers(e.key.Namespace).Get(ctx, e.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (database.UID != e.claimant.UID || database.DeletionTimestamp != nil) {
		return &kit.Stalled{Reason: "the database was deleted a moment ago"}
	}
	if err != nil {
		return fmt.Errorf("confirm that the database exists: %w", err)
	}
	e.confirmedAt = asked
	return nil
}

func (e *execution) carryOut(ctx context.Context, action plan.Action) error {
	switch action := action.(type) {
	case plan.Create:
		return e.create(ctx, action.Child)
	case plan.Apply:
		return e.applyAs(ctx, action.Child, kit.Expected{UID: action.UID, Version: action.Version}, "")
	case plan.Adopt:
		return e.adopt(ctx, action.Child, action.UID, action.FormerOwner)
	case plan.UseClaim:
		return e.useClaim(ctx, action.Claim)
	case plan.FindClaim:
		return e.findClaim(ctx, action.Claim)
	case plan.FindSecret:
		return e.findSecret(ctx, action)
	case plan.ConfirmGone:
		return e.confirmGone(ctx, action.Pod)
	case plan.ConfirmStopped:
		return e.confirmStopped(ctx, action.Pod)
	case plan.Promote, plan.Demote, plan.Fence, plan.Follow, plan.Require:
		return e.changeRole(ctx, action)
	case plan.Label:
		return e.label(ctx, action)
	case plan.SetPassword:
		return e.setPassword(ctx, action)
	case plan.Configure:
		return e.configure(ctx, action)
	case plan.Grow:
		return e.grow(ctx, action)
	case plan.Orphan:
		return e.orphan(ctx, action)
	case plan.Evict:
		return e.evict(ctx, action)
	case plan.DeleteVolume:
		return e.deleteVolume(ctx, action)
	case plan.Delete:
		return e.delete(ctx, action.Ref, action.UID, "")
	default:
		return fmt.Errorf("no way to carry out %T", action)
	}
}

func (e *execution) create(ctx context.Context, child plan.Child) error {
	resource, writer, err := e.writer(child.Kind)
	if err != nil {
		return err
	}
	if child.NeedsPassword() {
		// 26 letters and digits, of 130 bits.
		child = child.WithPassword(rand.Text())
	}
	created, err := writer.Create(ctx, child.Name, child.Fields, e.fieldsFor(child, ""))
	if err != nil {
		return err
	}
	e.caches.OwnWrites.Wrote(e.key, resource, created)
	return nil
}

// adopt takes over a retained object, once nobody can claim it any more.
func (e *execution) adopt(ctx context.Context, child plan.Child, uid, formerOwner types.UID) error {
	databases, err := e.config.Databases.CoolopsV1alpha1().DatabaseManagers(e.key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for the former owner: %w", err)
	}
	for _, database := range databases.Items {
		if database.UID == formerOwner {
			return &plan.Problem{
				Reason: v1alpha1.ReasonConflict,
				Message: fmt.Sprintf("%s belongs to the DatabaseManager %s; it was left as it is. Delete that one first, "+
					"or create this one with another spec.deploymentName.", child, database.Name),
				Retry: evictionRetry,
			}
		}
	}
	return e.applyAs(ctx, child, kit.Expected{UID: uid}, formerOwner)
}

// applyAs applies a child to the object that is expected, provided that it is
// still ours, or formerOwner's.
func (e *execution) applyAs(ctx context.Context, child plan.Child, expected kit.Expected, formerOwner types.UID) error {
	resource, writer, err := e.writer(child.Kind)
	if err != nil {
		return err
	}
	applied, err := writer.Apply(ctx, child.Name, expected, e.fieldsFor(child, formerOwner))
	if err != nil {
		return err
	}
	e.caches.OwnWrites.Wrote(e.key, resource, applied)
	return nil
}

// fieldsFor judges a live object, and returns what to apply to it. A Secret
// keeps the password that it has: what was read or made before may be older.
func (e *execution) fieldsFor(child plan.Child, formerOwner types.UID) kit.Existing {
	return func(live metav1.Object) (map[string]any, error) {
		verdict := e.claimant.Judge(child, live)
		switch {
		case verdict.Problem != nil:
			return nil, verdict.Problem
		case live.GetDeletionTimestamp() != nil:
			return nil, fmt.Errorf("%s is being deleted: %w", child, kit.ErrChanged)
		case !verdict.IsOurs && verdict.FormerOwner != formerOwner:
			return nil, fmt.Errorf("%s belongs to the UID %s: %w", child, verdict.FormerOwner, kit.ErrChanged)
		}
		secret, isSecret := live.(*corev1.Secret)
		if !isSecret {
			return child.Fields, nil
		}
		if child.IsGiven {
			return child.Fields, nil
		}
		if len(secret.Data[plan.PasswordKey]) == 0 {
			return nil, fmt.Errorf("%s has no password: %w", child, kit.ErrChanged)
		}
		return child.WithPassword(string(secret.Data[plan.PasswordKey])).Fields, nil
	}
}

// useClaim looks at a volume claim that is about to be mounted.
func (e *execution) useClaim(ctx context.Context, claim plan.Child) error {
	_, writer, err := e.writer(claim.Kind)
	if err != nil {
		return err
	}
	live, err := writer.Get(ctx, claim.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	verdict := e.claimant.Judge(claim, live)
	switch {
	case verdict.Problem != nil:
		return verdict.Problem
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted: %w", claim, kit.ErrChanged)
	case verdict.IsOurs:
		return nil
	}
	return e.adopt(ctx, claim, live.GetUID(), verdict.FormerOwner)
}

// findClaim looks for a claim that no watch shows, and, if it is ours, puts back
// what it has lost.
func (e *execution) findClaim(ctx context.Context, claim plan.Child) error {
	err := e.applyAs(ctx, claim, kit.Expected{}, "")
	_, isForeign := errors.AsType[*plan.Problem](err)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, kit.ErrChanged):
		// It isn't there, or is going, or a watch is about to show it.
		return nil
	case isForeign:
		return e.claimant.Unlabelled(claim.Ref)
	case err != nil:
		return err
	}
	klog.FromContext(ctx).Info("Put the labels of a volume claim back", "claim", claim.Name)
	return nil
}

// confirmGone looks, live, whether a pod is gone. One that has ended for good
// keeps its name, but not its folders.
func (e *execution) confirmGone(ctx context.Context, pod plan.PodRef) error {
	live, err := e.config.Kubernetes.CoreV1().Pods(e.key.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.UID != pod.UID || plan.HasEnded(live):
		return nil
	default:
		return fmt.Errorf("pod %s is still there: %w", pod.Name, kit.ErrChanged)
	}
}

// confirmStopped looks, live, whether no server runs in a pod. Of one whose node is
// out of reach nobody knows.
func (e *execution) confirmStopped(ctx context.Context, name string) error {
	live, err := e.config.Kubernetes.CoreV1().Pods(e.key.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case plan.HasEnded(live) || plan.IsStopped(live):
		return nil
	default:
		return fmt.Errorf("a server may run in pod %s: %w", name, kit.ErrChanged)
	}
}

func (e *execution) evict(ctx context.Context, eviction plan.Evict) error {
	err := e.config.Kubernetes.CoreV1().Pods(e.key.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: eviction.Pod, Namespace: e.key.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &eviction.UID}},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	e.caches.OwnWrites.Deleted(e.key, corev1.Resource("pods"), cache.NewObjectName(e.key.Namespace, eviction.Pod), eviction.UID)
	return nil
}

// deleteVolume deletes the volume claim of a member that was scaled away. The spec
// is read live: it may ask for that member again by now.
func (e *execution) deleteVolume(ctx context.Context, deletion plan.DeleteVolume) error {
	database, err := e.config.Databases.CoolopsV1alpha1().DatabaseManagers(e.key.Namespace).Get(ctx, e.key.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("confirm what the spec says: %w", err)
	}
	if seen := e.snapshot.Database; database.UID != seen.UID || database.Generation != seen.Generation || database.DeletionTimestamp != nil {
		return fmt.Errorf("the spec of %s: %w", e.key.Name, kit.ErrChanged)
	}
	return e.delete(ctx, plan.Ref{Kind: plan.KindVolumeClaim, Name: deletion.Claim}, deletion.UID, deletion.Version)
}

// delete deletes an object of a UID and, where it isn't empty, of a version.
func (e *execution) delete(ctx context.Context, ref plan.Ref, uid types.UID, version string) error {
	resource, writer, err := e.writer(ref.Kind)
	if err != nil {
		return err
	}
	if err := writer.Delete(ctx, ref.Name, uid, version); err != nil {
		return err
	}
	e.caches.OwnWrites.Deleted(e.key, resource, cache.NewObjectName(e.key.Namespace, ref.Name), uid)
	return nil
}
