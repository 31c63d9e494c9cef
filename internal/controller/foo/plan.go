// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/intent"
	coolopsv1alpha1 "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// foreignRetry is how often an object that no watch of ours shows is looked at
// again: it doesn't carry our label, so nothing says when it goes.
const foreignRetry = 30 * time.Second

// snapshot is what is known of one Foo. Nothing in it is ever changed.
type snapshot struct {
	foo *v1alpha1.Foo
	// status is the Foo's status, with the condition that the API server has no
	// place for.
	status v1alpha1.FooStatus
	// deployment is the one that the spec names, whoever it belongs to; nil if
	// there is none that carries our label.
	deployment *appsv1.Deployment
	// former are the Foo's Deployments under names that its spec gave before.
	former []*appsv1.Deployment
}

// step is what the Deployment needs.
type step string

const (
	stepNone   step = ""
	stepCreate step = "create"
	stepApply  step = "apply"
)

// plan is what to do for one Foo: first the step, then the deletions.
type plan struct {
	wanted wanted
	step   step
	// uid is the Deployment to apply to, and why says what for.
	uid types.UID
	why string
	// obsolete are the Deployments to delete.
	obsolete []obsolete
	// problem is why there is nothing to do that would help; nil otherwise.
	problem *problem
}

// obsolete is a Deployment that the Foo doesn't ask for any more.
type obsolete struct {
	name string
	uid  types.UID
}

// problem is why a Foo can't be brought further without help. It is an error, so
// that the executor can return what it met.
type problem struct {
	// reason is one of the reasons of the API package.
	reason string
	// message says what is wrong, and what to do about it.
	message string
	// retry is after what time to look again; zero means that a watch tells.
	retry time.Duration
}

// Error returns the message.
func (p *problem) Error() string { return p.message }

// decide says what to do for a Foo:
//
//	the spec can't be carried out         nothing, InvalidSpec
//	no Deployment of that name            create it
//	one that another owner has, or none   nothing, ErrResourceExists
//	ours, being deleted                   nothing, WaitingForDeletion
//	ours, by an earlier intent            apply
//	ours, with a field of ours changed    apply
//
// One Foo has one Deployment. kubernetes/sample-controller leaves behind what a
// Foo was renamed from, which then runs until somebody finds it; here it is
// deleted, once the new one is there. A Foo that can't have the new one keeps
// the old.
func decide(seen snapshot, render Renderer) plan {
	if problem := check(seen.foo); problem != nil {
		return plan{problem: problem}
	}
	wanted, err := seal(render(seen.foo))
	if err != nil {
		return plan{problem: invalid("%s", err)}
	}
	todo := plan{wanted: wanted}
	if seen.deployment == nil {
		todo.step = stepCreate
	} else if todo.problem = judge(seen.foo, seen.deployment); todo.problem != nil {
		return todo
	} else if why := differs(wanted, seen.deployment); why != "" {
		todo.step, todo.uid, todo.why = stepApply, seen.deployment.UID, why
	}
	for _, former := range seen.former {
		if former.DeletionTimestamp == nil {
			todo.obsolete = append(todo.obsolete, obsolete{name: former.Name, uid: former.UID})
		}
	}
	return todo
}

// judge finds what is wrong with a Deployment of the name that a Foo gives; nil
// if it is the Foo's, by UID. A name, also one in an owner reference, makes
// nothing ours.
func judge(foo *v1alpha1.Foo, deployment metav1.Object) *problem {
	found := &problem{}
	if deployment.GetLabels()[coolopsv1alpha1.LabelManagedBy] != coolopsv1alpha1.ManagedByValue {
		found.retry = foreignRetry
	}
	controller := metav1.GetControllerOfNoCopy(deployment)
	switch {
	case controller == nil:
		found.reason = v1alpha1.ReasonErrResourceExists
		found.message = fmt.Sprintf("Resource %q already exists and is not managed by Foo; it was left as it is. "+
			"Delete or rename that Deployment, or set another spec.deploymentName.", deployment.GetName())
	case controller.UID != foo.UID:
		found.reason = v1alpha1.ReasonErrResourceExists
		found.message = fmt.Sprintf("Resource %q already exists and is not managed by Foo; it was left as it is. "+
			"It belongs to %s %s (UID %s), and goes when that does; otherwise set another spec.deploymentName.",
			deployment.GetName(), controller.Kind, controller.Name, controller.UID)
	case deployment.GetDeletionTimestamp() != nil:
		found.reason = v1alpha1.ReasonWaitingForDeletion
		found.message = fmt.Sprintf("Deployment %q is being deleted; it is made again once it is gone.", deployment.GetName())
	default:
		return nil
	}
	return found
}

// differs says in what a Deployment differs from what is wanted: nothing only if
// the last intent was the same one, so that nothing is left of an older one, and
// every field of it still stands.
func differs(wanted wanted, deployment *appsv1.Deployment) string {
	if deployment.Annotations[coolopsv1alpha1.AnnotationIntentHash] != wanted.hash {
		return "the intent changed"
	}
	field, err := intent.Drift(wanted.fields, deployment)
	switch {
	case err != nil:
		return err.Error()
	case field != "":
		return "the field " + field + " was changed"
	default:
		return ""
	}
}
