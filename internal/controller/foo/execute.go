// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// fieldManager is the name under which the operator owns fields of a Deployment;
// those of a status go under another, so that neither apply removes what the
// other set.
const (
	fieldManager       = "database-manager"
	statusFieldManager = "database-manager-status"
)

// execution carries out the plan for one Foo. It is the only place that writes
// Deployments.
type execution struct {
	*Controller
	key    cache.ObjectName
	foo    *v1alpha1.Foo
	writer kit.Writer[*appsv1.Deployment]
}

// execute carries out a plan, up to the first step that fails. One with a
// problem has no steps.
func (c *Controller) execute(ctx context.Context, key cache.ObjectName, seen snapshot, todo plan) (outcome, error) {
	e := &execution{Controller: c, key: key, foo: seen.foo, writer: kit.Writer[*appsv1.Deployment]{
		Client:  c.config.Kubernetes.AppsV1().Deployments(key.Namespace),
		New:     func() *appsv1.Deployment { return &appsv1.Deployment{} },
		Manager: fieldManager,
	}}
	written, err := e.write(ctx, todo)
	if err != nil {
		return failed(string(todo.step)+" the Deployment "+todo.wanted.name, err)
	}
	for _, obsolete := range todo.obsolete {
		if err := e.delete(ctx, obsolete); err != nil {
			done, failure := failed("delete the Deployment "+obsolete.name, err)
			done.deployment = written
			return done, failure
		}
	}
	return outcome{deployment: written, problem: todo.problem, isDone: todo.problem == nil}, nil
}

// logDecision logs what was decided, also if it is that all is as it should be.
func logDecision(ctx context.Context, todo plan) {
	logger := klog.FromContext(ctx).V(2)
	if todo.problem != nil {
		logger.Info("Decided to wait for help", "reason", todo.problem.reason)
		return
	}
	logger.Info("Decided", "step", cmp.Or(todo.step, "nothing"), "why", todo.why, "obsolete", len(todo.obsolete))
}

// write takes the step that the Deployment needs, and returns it as it is then;
// nil if it needs none.
func (e *execution) write(ctx context.Context, todo plan) (*appsv1.Deployment, error) {
	var written metav1.Object
	var err error
	switch todo.step {
	case stepNone:
		return nil, nil
	case stepCreate:
		if err = e.confirmExistence(ctx); err == nil {
			written, err = e.writer.Create(ctx, todo.wanted.name, todo.wanted.fields, e.existing(todo.wanted))
		}
	case stepApply:
		written, err = e.writer.Apply(ctx, todo.wanted.name, kit.Expected{UID: todo.uid}, e.existing(todo.wanted))
	}
	if err != nil {
		return nil, err
	}
	deployment, isDeployment := written.(*appsv1.Deployment)
	if !isDeployment {
		return nil, fmt.Errorf("the API server answered with a %T", written)
	}
	e.caches.OwnWrites.Wrote(e.key, deploymentResource(), deployment)
	klog.FromContext(ctx).Info("Wrote the Deployment", "deployment", deployment.Name, "step", todo.step, "why", todo.why)
	return deployment, nil
}

// existing judges a live Deployment, and returns what to apply to it. One that
// is ours and was missing from the cache has lost the label that the informer
// selects by, or was made a moment ago.
func (e *execution) existing(wanted wanted) kit.Existing {
	return func(live metav1.Object) (map[string]any, error) {
		if problem := judge(e.foo, live); problem != nil {
			return nil, problem
		}
		return wanted.fields, nil
	}
}

// confirmExistence looks, live, whether the Foo is still there, before a
// Deployment is made: the cache of Deployments may show that the garbage
// collector took one before the cache of Foos shows why.
func (e *execution) confirmExistence(ctx context.Context) error {
	foo, err := e.config.Foos.SamplecontrollerV1alpha1().Foos(e.key.Namespace).Get(ctx, e.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (foo.UID != e.foo.UID || foo.DeletionTimestamp != nil) {
		return &kit.Stalled{Reason: "the Foo was deleted a moment ago"}
	}
	if err != nil {
		return fmt.Errorf("confirm that the Foo exists: %w", err)
	}
	return nil
}

// delete removes a Deployment that the Foo doesn't ask for any more.
func (e *execution) delete(ctx context.Context, obsolete obsolete) error {
	if err := e.writer.Delete(ctx, obsolete.name, obsolete.uid, ""); err != nil {
		return err
	}
	e.caches.OwnWrites.Deleted(e.key, deploymentResource(), cache.NewObjectName(e.key.Namespace, obsolete.name), obsolete.uid)
	klog.FromContext(ctx).Info("Deleted a Deployment of an earlier name", "deployment", obsolete.name)
	return nil
}

// failed tells what a user can help with, which goes into the status, from what
// passes by trying again.
func failed(what string, err error) (outcome, error) {
	var met *problem
	var stalled *kit.Stalled
	switch {
	case errors.As(err, &met):
		return outcome{problem: met}, nil
	case errors.As(err, &stalled):
		return outcome{}, err
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return outcome{}, &kit.Stalled{Reason: "the namespace is being deleted"}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return outcome{problem: &problem{
			reason:  v1alpha1.ReasonStepRefused,
			message: fmt.Sprintf("The API server refused to %s: %s", what, err),
		}}, fmt.Errorf("%s: %w", what, err)
	default:
		return outcome{}, fmt.Errorf("%s: %w", what, err)
	}
}
