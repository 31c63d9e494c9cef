// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	coolopsv1alpha1 "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

func TestDecide(t *testing.T) {
	renamed := func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "renamed" }
	unlabelled := func(deployment *appsv1.Deployment) { delete(deployment.Labels, coolopsv1alpha1.LabelManagedBy) }
	for sentence, row := range map[string]struct {
		foo        *v1alpha1.Foo
		deployment *appsv1.Deployment
		former     []*appsv1.Deployment
		step       step
		reason     string
		retry      time.Duration
		deleted    []string
	}{
		"a missing Deployment is made": {foo: newFoo(), step: stepCreate},
		"one that is as it should be is left alone": {
			foo: newFoo(), deployment: newDeployment(t, newFoo()),
		},
		"one by an earlier intent is applied": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(func(foo *v1alpha1.Foo) { foo.Spec.Replicas = nil })), step: stepApply,
		},
		"one of nobody is left alone": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), withoutOwner), reason: v1alpha1.ReasonErrResourceExists,
		},
		"one that no watch shows is looked at again": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), withoutOwner, unlabelled), reason: v1alpha1.ReasonErrResourceExists, retry: foreignRetry,
		},
		"one of a Foo of the same name and another UID is left alone": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), ownedBy("former-uid")), reason: v1alpha1.ReasonErrResourceExists,
		},
		"an owner of our UID that isn't the controller makes nothing ours": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }),
			reason: v1alpha1.ReasonErrResourceExists,
		},
		"one of ours that is being deleted is waited for": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), terminating), reason: v1alpha1.ReasonWaitingForDeletion,
		},
		"a foreign one that is being deleted is foreign": {
			foo: newFoo(), deployment: newDeployment(t, newFoo(), withoutOwner, terminating), reason: v1alpha1.ReasonErrResourceExists,
		},
		"the old one goes when the name changes": {
			foo: newFoo(renamed), former: []*appsv1.Deployment{newDeployment(t, newFoo())}, step: stepCreate, deleted: []string{"example-foo"},
		},
		"every old one goes": {
			foo: newFoo(renamed), deployment: newDeployment(t, newFoo(renamed)),
			former:  []*appsv1.Deployment{newDeployment(t, newFoo(), named("a")), newDeployment(t, newFoo(), named("b"))},
			deleted: []string{"a", "b"},
		},
		"an old one that is going isn't asked to go again": {
			foo: newFoo(renamed), deployment: newDeployment(t, newFoo(renamed)), former: []*appsv1.Deployment{newDeployment(t, newFoo(), terminating)},
		},
		"the old one stays while the new name is taken": {
			foo: newFoo(renamed), deployment: newDeployment(t, newFoo(renamed), withoutOwner),
			former: []*appsv1.Deployment{newDeployment(t, newFoo())}, reason: v1alpha1.ReasonErrResourceExists,
		},
		"the old one stays while there is no new name": {
			foo: newFoo(func(foo *v1alpha1.Foo) { foo.Spec = v1alpha1.FooSpec{} }), former: []*appsv1.Deployment{newDeployment(t, newFoo())},
			reason: v1alpha1.ReasonInvalidSpec,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			todo := decide(snapshot{foo: row.foo, deployment: row.deployment, former: row.former}, Render)
			if todo.step != row.step {
				t.Errorf("the step is %q, want %q", todo.step, row.step)
			}
			if todo.step == stepApply && (todo.uid != row.deployment.UID || todo.why == "") {
				t.Errorf("it applies to the UID %q because of %q", todo.uid, todo.why)
			}
			checkProblem(t, todo, row.reason, row.retry)
			var deleted []string
			for _, obsolete := range todo.obsolete {
				deleted = append(deleted, obsolete.name)
			}
			if !slices.Equal(deleted, row.deleted) {
				t.Errorf("deletes %v, want %v", deleted, row.deleted)
			}
		})
	}
}

// checkProblem checks what a plan says is wrong; a plan with a problem does nothing.
func checkProblem(t *testing.T, todo plan, reason string, retry time.Duration) {
	t.Helper()
	if reason == "" {
		if todo.problem != nil {
			t.Errorf("problem: %s", todo.problem.message)
		}
		return
	}
	if todo.problem == nil || todo.problem.reason != reason || todo.problem.retry != retry || todo.problem.message == "" {
		t.Errorf("the problem is %+v, want %s and a look after %s", todo.problem, reason, retry)
	}
	if todo.step != stepNone || len(todo.obsolete) > 0 {
		t.Errorf("with a problem, it still does %q and deletes %v", todo.step, todo.obsolete)
	}
}

func TestEveryFieldOfOursIsPutBack(t *testing.T) {
	container := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	for field, change := range map[string]func(*appsv1.Deployment){
		"metadata.labels.app":                     func(d *appsv1.Deployment) { d.Labels["app"] = "apache" },
		"metadata.labels.controller":              func(d *appsv1.Deployment) { delete(d.Labels, "controller") },
		"metadata.labels":                         func(d *appsv1.Deployment) { d.Labels = nil },
		"metadata.ownerReferences[0].apiVersion":  func(d *appsv1.Deployment) { d.OwnerReferences[0].APIVersion = "v1" },
		"blockOwnerDeletion":                      func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = nil },
		"spec.replicas":                           func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) },
		"spec.selector.matchLabels.app":           func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "apache" },
		"spec.template.metadata.labels.app":       func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "apache" },
		"spec.template.spec.containers[0]":        func(d *appsv1.Deployment) { container(d).Name = "apache" },
		"spec.template.spec.containers[0].image":  func(d *appsv1.Deployment) { container(d).Image = "httpd" },
		"containers[0].imagePullPolicy":           func(d *appsv1.Deployment) { container(d).ImagePullPolicy = corev1.PullAlways },
		"the intent changed, or so the hash says": func(d *appsv1.Deployment) { d.Annotations[coolopsv1alpha1.AnnotationIntentHash] = "0" },
	} {
		t.Run(field, func(t *testing.T) {
			todo := decide(snapshot{foo: newFoo(), deployment: newDeployment(t, newFoo(), change)}, Render)
			about, _, _ := strings.Cut(field, ",")
			if todo.step != stepApply || !strings.Contains(todo.why, about) {
				t.Errorf("got the step %q because of %q", todo.step, todo.why)
			}
		})
	}
}

func TestWhatOthersAddIsNoDrift(t *testing.T) {
	for sentence, change := range map[string]func(*appsv1.Deployment){
		"a label":       func(d *appsv1.Deployment) { d.Labels["team"] = "shop" },
		"an annotation": func(d *appsv1.Deployment) { d.Annotations["note"] = "kept" },
		"an owner": func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "x"})
		},
		"a container": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar"})
		},
		"a default of the API server": func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(10)) },
	} {
		t.Run(sentence, func(t *testing.T) {
			if todo := decide(snapshot{foo: newFoo(), deployment: newDeployment(t, newFoo(), change)}, Render); todo.step != stepNone {
				t.Errorf("got the step %q because of %q", todo.step, todo.why)
			}
		})
	}
}

// TestAnIntentThatSaysLessIsApplied is about what the fields alone can't show:
// something that an earlier intent set, and this one doesn't.
func TestAnIntentThatSaysLessIsApplied(t *testing.T) {
	saysMore := func(foo *v1alpha1.Foo) *appsv1apply.DeploymentApplyConfiguration {
		return Render(foo).WithSpec(Render(foo).Spec.WithMinReadySeconds(7))
	}
	wanted, err := seal(saysMore(newFoo()))
	if err != nil {
		t.Fatal(err)
	}
	before := newDeployment(t, newFoo(), func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 7
		d.Annotations[coolopsv1alpha1.AnnotationIntentHash] = wanted.hash
	})
	if todo := decide(snapshot{foo: newFoo(), deployment: before}, saysMore); todo.step != stepNone {
		t.Fatalf("the earlier renderer already wants the step %q because of %q", todo.step, todo.why)
	}
	if todo := decide(snapshot{foo: newFoo(), deployment: before}, Render); todo.step != stepApply {
		t.Errorf("got the step %q, want an apply", todo.step)
	}
}

func TestDecidingChangesNothing(t *testing.T) {
	foo, deployment := newFoo(), newDeployment(t, newFoo(), available(3))
	decide(snapshot{foo: foo, deployment: deployment, former: []*appsv1.Deployment{deployment}}, Render)
	if !reflect.DeepEqual(foo, newFoo()) || !reflect.DeepEqual(deployment, newDeployment(t, newFoo(), available(3))) {
		t.Error("it changed what it was given")
	}
}
