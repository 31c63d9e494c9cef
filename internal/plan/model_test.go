// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// model is a cluster in small: it holds the objects of one database, runs the
// StatefulSet's controller, and can be disturbed.
type model struct {
	*snapshotBuilder
	random  *rand.Rand
	desired Desired
	clock   time.Time
	made    int
}

func newModel(seed uint64) *model {
	database := aDatabase()
	return &model{snapshotBuilder: database, random: rand.New(rand.NewPCG(seed, 1)), desired: desired(database), clock: noon()}
}

// faults are what can happen to a cluster between two passes.
func (m *model) faults() []func() {
	return []func(){
		func() {}, // nothing
		func() { // somebody deletes a child
			if refs := slices.SortedFunc(maps.Keys(m.Objects), compareRefs); len(refs) > 0 {
				delete(m.Objects, refs[m.random.IntN(len(refs))])
			}
		},
		func() { // somebody changes a child
			if refs := slices.SortedFunc(maps.Keys(m.Objects), compareRefs); len(refs) > 0 {
				object := m.Objects[refs[m.random.IntN(len(refs))]]
				if object.GetAnnotations() != nil {
					object.GetAnnotations()[v1alpha1.AnnotationIntentHash] = "changed"
				}
			}
		},
		func() { // the spec changes
			workload := &m.desired.Children[len(m.desired.Children)-1]
			workload.Hash = fmt.Sprintf("hash-%d", m.random.IntN(1000))
		},
		func() { // the configuration changes
			m.desired.Children[2] = aChild(Ref{KindConfigMap, fmt.Sprintf("db-config-%d", m.random.IntN(1000))})
		},
		func() { m.Members = nil }, // the pod is gone
		func() { // the engine falls silent
			for i := range m.Members {
				m.Members[i].Probe.Answers = false
			}
		},
	}
}

// settle lets the StatefulSet's controller, and the kubelet, do their work.
func (m *model) settle() {
	m.clock = m.clock.Add(time.Minute)
	statefulSet, exists := m.Objects[m.workloadRef()].(*appsv1.StatefulSet)
	if !exists {
		m.Members = nil
		return
	}
	statefulSet.Status.UpdateRevision = statefulSet.Annotations[v1alpha1.AnnotationIntentHash]
	if len(m.Members) > 0 {
		return
	}
	m.made++
	m.withMember(func(member *Member) {
		member.Pod.UID = types.UID(fmt.Sprintf("uid-of-pod-%d", m.made))
		member.Pod.CreationTimestamp = metav1.NewTime(m.clock)
		member.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = statefulSet.Status.UpdateRevision
	})
}

// carryOut does to the model what the executor would do to a cluster.
func (m *model) carryOut(action Action) {
	switch action := action.(type) {
	case Create:
		object := asObject(m.Database, action.Child)
		m.made++
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", m.made)))
		object.SetCreationTimestamp(metav1.NewTime(m.clock))
		m.with(action.Child.Kind, object)
	case Apply:
		object := m.Objects[action.Child.Ref]
		object.GetAnnotations()[v1alpha1.AnnotationIntentHash] = action.Child.Hash
	case Adopt:
		m.Objects[action.Child.Ref].SetLabels(retained("redis", "db", m.desired.DataID, string(ourUID)))
	case Evict:
		m.Members = nil
	case Delete:
		delete(m.Objects, action.Ref)
	case UseClaim:
	}
}

// check holds the plan to what must be true of every one.
func (m *model) check(t *testing.T, plan Plan) {
	t.Helper()
	disruptions := 0
	for _, action := range plan.Actions {
		if m.Database.DeletionTimestamp != nil {
			t.Fatalf("%s for a database that is being deleted", action)
		}
		switch action := action.(type) {
		case Delete:
			object := m.Objects[action.Ref]
			if action.UID == "" || object == nil || object.GetUID() != action.UID || !m.isControlled(object) {
				t.Fatalf("%s by the UID %q: it isn't ours, or another one", action, action.UID)
			}
			if action.Ref.Kind != KindConfigMap {
				t.Fatalf("%s: nothing but configuration is ever deleted", action)
			}
		case Evict:
			disruptions++
			if action.UID == "" || len(m.Members) == 0 || m.Members[0].Pod.UID != action.UID {
				t.Fatalf("%s by the UID %q: that isn't a member", action, action.UID)
			}
		case Apply:
			if action.UID == "" || m.Objects[action.Child.Ref].GetUID() != action.UID {
				t.Fatalf("%s by the UID %q: that is another one", action, action.UID)
			}
		case Create:
			if m.Objects[action.Child.Ref] != nil {
				t.Fatalf("%s, which exists", action)
			}
		case Adopt, UseClaim:
		}
	}
	if disruptions > 1 {
		t.Fatalf("%d members are disrupted at once: %v", disruptions, actionsOf(plan))
	}
}

// pass plans once, checks the plan, and carries out its first actions, as many
// as steps: the operator may be killed anywhere.
func (m *model) pass(t *testing.T, steps int) Plan {
	t.Helper()
	snapshot := m.build()
	plan := Make(snapshot, m.desired, nil, m.clock)
	if again := Make(snapshot, m.desired, nil, m.clock); !reflect.DeepEqual(plan, again) {
		t.Fatalf("the same snapshot gave two plans: %v and %v", actionsOf(plan), actionsOf(again))
	}
	m.check(t, plan)
	for i, action := range plan.Actions {
		if i < steps {
			m.carryOut(action)
		}
	}
	return plan
}

func TestWhateverHappensThePlanStaysSafeAndConverges(t *testing.T) {
	for seed := range uint64(100) {
		m := newModel(seed)
		for range 40 {
			faults := m.faults()
			faults[m.random.IntN(len(faults))]()
			m.pass(t, m.random.IntN(9))
			m.settle()
		}
		m.convergeOn(t, seed)
	}
}

// convergeOn expects that the model comes to rest as it should be, once nothing
// happens to it any more.
func (m *model) convergeOn(t *testing.T, seed uint64) {
	t.Helper()
	for range 20 {
		plan := m.pass(t, len(m.desired.Children)+9)
		m.settle()
		if len(plan.Actions) == 0 {
			break
		}
	}
	if plan := m.pass(t, 0); len(plan.Actions) > 0 || plan.Problem != nil {
		t.Fatalf("seed %d doesn't come to rest: %v, %v", seed, actionsOf(plan), plan.Problem)
	}
	for _, child := range append([]Child{m.desired.Stem}, m.desired.Children...) {
		if object := m.Objects[child.Ref]; object == nil || object.GetAnnotations()[v1alpha1.AnnotationIntentHash] != child.Hash {
			t.Fatalf("seed %d came to rest without %s as it should be", seed, child)
		}
	}
	if len(m.Members) != 1 || m.Members[0].Pod.Labels[appsv1.ControllerRevisionHashLabelKey] != m.desired.Workload().Hash {
		t.Fatalf("seed %d came to rest with the members %v", seed, m.Members)
	}
}

func TestNothingIsPlannedOnceDeletionHasBegun(t *testing.T) {
	for seed := range uint64(50) {
		m := newModel(seed)
		for range m.random.IntN(10) {
			m.pass(t, m.random.IntN(9))
			m.settle()
		}
		m.deleting()
		if plan := m.pass(t, 9); len(plan.Actions) > 0 || !plan.IsDeleting {
			t.Fatalf("seed %d: %v", seed, actionsOf(plan))
		}
	}
}
