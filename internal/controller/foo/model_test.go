// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	coolopsv1alpha1 "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// world is a model of a namespace: one Foo, and Deployments of whomever.
type world struct {
	t           *testing.T
	random      *rand.Rand
	foo         *v1alpha1.Foo
	deployments map[string]*appsv1.Deployment
	uids        int
	history     []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return &world{t: t, random: rand.New(rand.NewPCG(seed, 0)), foo: newFoo(), deployments: map[string]*appsv1.Deployment{}}
}

func (w *world) newUID() types.UID {
	w.uids++
	return types.UID("uid-" + strconv.Itoa(w.uids))
}

func (w *world) isOurs(deployment *appsv1.Deployment) bool {
	return controllerUID(deployment) == w.foo.UID
}

func isSeen(deployment *appsv1.Deployment) bool {
	return deployment.Labels[coolopsv1alpha1.LabelManagedBy] == coolopsv1alpha1.ManagedByValue
}

// disturb lets one thing happen that isn't the controller's doing.
func (w *world) disturb() {
	names := []string{"a", "b", "c"}
	name := names[w.random.IntN(len(names))]
	found := w.deployments[name]
	happen := []struct {
		what string
		do   func()
	}{
		{"the Foo names " + name, func() { w.foo = w.foo.DeepCopy(); w.foo.Spec.DeploymentName = name }},
		{"the Foo names nothing", func() { w.foo = w.foo.DeepCopy(); w.foo.Spec.DeploymentName = "" }},
		{"the Foo has other replicas", func() { w.foo = w.foo.DeepCopy(); w.foo.Spec.Replicas = new(int32(1 + w.random.IntN(10))) }},
		{"the Foo is created again", func() { w.foo = w.foo.DeepCopy(); w.foo.UID = w.newUID() }},
		{name + " is deleted", func() { delete(w.deployments, name) }},
		{name + " is made by somebody else", func() { w.deployments[name] = w.foreign(name) }},
		{name + " loses its label", func() { w.change(found, func(d *appsv1.Deployment) { d.Labels = nil }) }},
		{name + " loses its owner", func() { w.change(found, withoutOwner) }},
		{name + " is scaled", func() { w.change(found, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }) }},
		{"what has lost its owner is collected", func() {
			maps.DeleteFunc(w.deployments, func(_ string, d *appsv1.Deployment) bool { return controllerUID(d) != "" && !w.isOurs(d) })
		}},
	}
	chosen := happen[w.random.IntN(len(happen))]
	w.history = append(w.history, chosen.what)
	chosen.do()
}

// foreign returns a Deployment that is nobody's, or one of somebody else.
func (w *world) foreign(name string) *appsv1.Deployment {
	deployment := newDeployment(w.t, w.foo, named(name), ownedBy(w.newUID()))
	deployment.UID = w.newUID()
	if w.random.IntN(2) == 0 {
		deployment.OwnerReferences = nil
	}
	if w.random.IntN(2) == 0 {
		deployment.Labels = nil
	}
	return deployment
}

func (w *world) change(deployment *appsv1.Deployment, change func(*appsv1.Deployment)) {
	if deployment != nil {
		deployment = deployment.DeepCopy()
		change(deployment)
		w.deployments[deployment.Name] = deployment
	}
}

// sync does what the controller would, and checks that it touches only what is
// the Foo's. It returns the plan, and what was met on the way.
func (w *world) sync() (plan, *problem) {
	seen := snapshot{foo: w.foo}
	for _, name := range slices.Sorted(maps.Keys(w.deployments)) {
		switch deployment := w.deployments[name]; {
		case !isSeen(deployment):
		case name == w.foo.Spec.DeploymentName:
			seen.deployment = deployment
		case w.isOurs(deployment):
			seen.former = append(seen.former, deployment)
		}
	}
	todo := decide(seen, Render)
	if todo.problem != nil {
		return todo, todo.problem
	}
	if todo.step != stepNone {
		live := w.deployments[todo.wanted.name]
		if live == nil {
			live = &appsv1.Deployment{}
			live.UID = w.newUID()
		} else if problem := judge(w.foo, live); problem != nil {
			return todo, problem
		}
		w.deployments[todo.wanted.name] = newDeployment(w.t, w.foo, func(d *appsv1.Deployment) { d.UID = live.UID })
	}
	for _, obsolete := range todo.obsolete {
		deployment := w.deployments[obsolete.name]
		if deployment == nil || deployment.UID != obsolete.uid || !w.isOurs(deployment) {
			w.t.Fatalf("it deletes %+v, which isn't there or isn't the Foo's, after %q", obsolete, w.history)
		}
		delete(w.deployments, obsolete.name)
	}
	return todo, nil
}

// foreigners are the Deployments that aren't the Foo's.
func (w *world) foreigners() map[string]*appsv1.Deployment {
	found := maps.Clone(w.deployments)
	maps.DeleteFunc(found, func(_ string, d *appsv1.Deployment) bool { return w.isOurs(d) })
	return found
}

// checkRest checks how things are once nothing happens any more.
func (w *world) checkRest(todo plan, met *problem) {
	name := w.foo.Spec.DeploymentName
	deployment := w.deployments[name]
	switch {
	case met != nil && met.reason == v1alpha1.ReasonInvalidSpec:
		if name != "" {
			w.t.Fatalf("%s, after %q", met, w.history)
		}
	case met != nil:
		if deployment == nil || w.isOurs(deployment) {
			w.t.Fatalf("%s, where there is %v, after %q", met, deployment, w.history)
		}
	case todo.step != stepNone || len(todo.obsolete) > 0:
		w.t.Fatalf("it doesn't come to rest: %s because of %s, after %q", todo.step, todo.why, w.history)
	default:
		for _, other := range w.deployments {
			if w.isOurs(other) && isSeen(other) && other.Name != name {
				w.t.Fatalf("the Foo has %s besides, after %q", other.Name, w.history)
			}
		}
		if deployment == nil || differs(todo.wanted, deployment) != "" {
			w.t.Fatalf("the Deployment is %v, after %q", deployment, w.history)
		}
	}
}

// TestWhateverHappensTheFooGetsWhatIsItsAndNothingElse lets things happen at
// random, with a sync after some of them, and now and then a rest.
func TestWhateverHappensTheFooGetsWhatIsItsAndNothingElse(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 100 {
				w.disturb()
				if w.random.IntN(3) == 0 {
					continue
				}
				before := w.foreigners()
				if _, met := w.sync(); met != nil {
					w.history = append(w.history, "it says "+met.reason)
				}
				if after := w.foreigners(); !equality.Semantic.DeepEqual(before, after) {
					t.Fatalf("it changed what isn't the Foo's, after %q", w.history)
				}
				if w.random.IntN(4) == 0 {
					todo, met := w.sync()
					w.checkRest(todo, met)
				}
			}
		})
	}
}
