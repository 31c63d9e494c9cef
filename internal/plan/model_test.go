// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	// disks are the data directories on the volumes, by the claim's UID.
	disks map[types.UID]*disk
	// unseen is the volume claim while it lacks the label by which it is watched.
	unseen metav1.Object
	// hasServed is true once writes were acknowledged that nobody gave up since.
	hasServed bool
}

// disk is a data directory. A member on it takes writes once it was promoted,
// also after a restart.
type disk struct{ isPrimary bool }

func newModel(seed uint64) *model {
	database := aDatabase()
	return &model{snapshotBuilder: database, random: rand.New(rand.NewPCG(seed, 1)), desired: desired(database), clock: noon(), disks: map[types.UID]*disk{}}
}

// faults are what can happen to a cluster between two passes.
func (m *model) faults() []func() {
	return []func(){
		func() {}, // nothing
		func() { // somebody deletes a child
			if refs := slices.SortedFunc(maps.Keys(m.Objects), compareRefs); len(refs) > 0 {
				m.lose(refs[m.random.IntN(len(refs))])
			}
		},
		func() { m.lose(theClaimRef()) },
		func() { m.unlabel(1 + m.random.IntN(4)) },
		func() { m.lose(Ref{KindConfigMap, "db-topology"}) },
		func() { // the user gives the data up
			if topology, isLost := m.lostData(); isLost {
				m.Database.Annotations = map[string]string{v1alpha1.AnnotationReinitialize: topology.DataID}
				m.hasServed = false
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
			m.desired.Children[theConfig] = aChild(Ref{KindConfigMap, fmt.Sprintf("db-config-%d", m.random.IntN(1000))})
		},
		func() { m.Members = nil },   // the pod is gone
		func() { m.restartServer() }, // the container ended, and is started again
		func() { // the engine falls silent
			for i := range m.Members {
				m.Members[i].Probe.Answers = false
			}
		},
	}
}

func theClaimRef() Ref { return Ref{KindVolumeClaim, "data-db-0"} }

// claim is the volume claim, whether a watch shows it or not.
func (m *model) claim() metav1.Object {
	if seen := m.Objects[theClaimRef()]; seen != nil {
		return seen
	}
	return m.unseen
}

// unlabel has somebody take labels off the volume claim, the one by which it is
// watched among them or not. As long as the topology doesn't name the claim, one
// label has to be left that says whose it is.
func (m *model) unlabel(count int) {
	claim := m.claim()
	if claim == nil {
		return
	}
	names := []string{v1alpha1.LabelManagedBy, v1alpha1.LabelStem, v1alpha1.LabelEngine, v1alpha1.LabelOwnerUID}
	if topology, _ := m.Objects[Ref{KindConfigMap, "db-topology"}].(*corev1.ConfigMap); topology == nil || topology.Data[topologyHolderKey] != string(claim.GetUID()) {
		names = names[:1]
	}
	for range count {
		delete(claim.GetLabels(), names[m.random.IntN(len(names))])
	}
	if claim.GetLabels()[v1alpha1.LabelManagedBy] == "" {
		delete(m.Objects, theClaimRef())
		m.unseen = claim
	}
}

// find does what the executor does to find the volume claim.
func (m *model) find(t *testing.T, action FindClaim) {
	t.Helper()
	if m.unseen == nil {
		return
	}
	if verdict := m.build().Claimant(m.desired.Topology.DataID).Judge(action.Claim, m.unseen); !verdict.IsOurs {
		t.Fatalf("the claim with the labels %v is given up: %+v, %v", m.unseen.GetLabels(), verdict, verdict.Problem)
	}
	uid := m.unseen.GetUID()
	m.unseen = nil
	object := asObject(m.Database, action.Claim)
	object.SetUID(uid)
	m.with(KindVolumeClaim, object)
}

// lose deletes an object. What remembers that there are data is lost one at a
// time: with all of it gone at once, nobody could tell.
func (m *model) lose(ref Ref) {
	topology := m.Objects[Ref{KindConfigMap, "db-topology"}]
	claim := m.claim()
	isMarked := claim != nil && claim.GetAnnotations()[v1alpha1.AnnotationInitialized] != ""
	switch {
	case m.hasServed && ref.Kind == KindVolumeClaim && topology == nil,
		m.hasServed && ref.Name == "db-topology" && !isMarked:
		return
	case ref.Kind == KindVolumeClaim && claim != nil:
		delete(m.disks, claim.GetUID())
		m.Members, m.unseen = nil, nil
	}
	delete(m.Objects, ref)
}

// lostData returns the topology of a database whose volume is empty.
func (m *model) lostData() (Topology, bool) {
	recorded, problem := m.build().Recall(anEngine(), noon())
	isLost := problem == nil && recorded.Topology.State == TopologyInitialized && len(m.Members) > 0 && m.Members[0].saysNoData()
	return recorded.Topology.Topology, isLost
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
	if m.claim() == nil {
		m.made++
		claim := asObject(m.Database, m.desired.Claims[0])
		claim.SetUID(types.UID(fmt.Sprintf("uid-of-claim-%d", m.made)))
		claim.SetAnnotations(nil)
		delete(claim.GetLabels(), v1alpha1.LabelDataID)
		m.with(KindVolumeClaim, claim)
	}
	if len(m.Members) > 0 {
		return
	}
	m.made++
	m.withMember(func(member *Member) {
		member.Pod.UID = types.UID(fmt.Sprintf("uid-of-pod-%d", m.made))
		member.Pod.CreationTimestamp = metav1.NewTime(m.clock)
		member.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = statefulSet.Status.UpdateRevision
	})
	m.restartServer()
}

// restartServer does what the boot script does.
func (m *model) restartServer() {
	claim := m.claim()
	if len(m.Members) == 0 || claim == nil {
		return
	}
	member := &m.Members[0]
	topology, _ := m.Objects[Ref{KindConfigMap, "db-topology"}].(*corev1.ConfigMap)
	data := m.disks[claim.GetUID()]
	if data == nil && topology != nil && topology.Data[TopologyStateKey] == string(TopologyNew) {
		data = &disk{}
		m.disks[claim.GetUID()] = data
	}
	if data == nil {
		member.Probe = Probe{}
		refusing(exitNoData, "The volume is empty.")(member)
		return
	}
	role := v1alpha1.MemberRoleReplica
	if data.isPrimary {
		role = v1alpha1.MemberRolePrimary
	}
	member.Probe = Probe{IsAsked: true, Answers: true, Engine: EngineState{Role: role, RunID: strconv.Itoa(m.made), Progress: Progress{IsDrained: true}}}
	member.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
}

// promote has the member take writes, and checks what must be true before.
func (m *model) promote(t *testing.T, promotion Promote) {
	t.Helper()
	claim := m.claim()
	topology, _ := m.Objects[Ref{KindConfigMap, "db-topology"}].(*corev1.ConfigMap)
	if len(m.Members) == 0 || claim == nil || m.disks[claim.GetUID()] == nil {
		return
	}
	if topology == nil || topology.Data[TopologyStateKey] != string(TopologyInitialized) || topology.Data[topologyHolderKey] != string(claim.GetUID()) {
		t.Fatalf("%s under the topology %v", promotion, topology)
	}
	if claim.GetAnnotations()[v1alpha1.AnnotationInitialized] != topology.Data[topologyDataIDKey] {
		t.Fatalf("%s while its volume isn't marked", promotion)
	}
	if m.hasServed && !m.disks[claim.GetUID()].isPrimary {
		t.Fatalf("%s, which has none of the data that were acknowledged", promotion)
	}
	m.disks[claim.GetUID()].isPrimary = true
	m.hasServed = true
	m.restartServer()
}

// carryOut does to the model what the executor would do to a cluster.
func (m *model) carryOut(t *testing.T, action Action) {
	t.Helper()
	switch action := action.(type) {
	case Create:
		object := asObject(m.Database, action.Child)
		m.made++
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", m.made)))
		object.SetCreationTimestamp(metav1.NewTime(m.clock))
		m.with(action.Child.Kind, object)
	case Apply:
		object := asObject(m.Database, action.Child)
		object.SetUID(action.UID)
		object.SetCreationTimestamp(m.Objects[action.Child.Ref].GetCreationTimestamp())
		m.with(action.Child.Kind, object)
	case Adopt:
		m.Objects[action.Child.Ref].SetLabels(retained("redis", "db", m.desired.Topology.DataID, string(ourUID)))
	case Promote:
		m.promote(t, action)
	case Evict:
		m.Members = nil
	case Delete:
		delete(m.Objects, action.Ref)
	case FindClaim:
		m.find(t, action)
	case UseClaim, ConfirmGone:
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
		case Promote:
			disruptions++
		case Adopt, UseClaim, FindClaim, ConfirmGone:
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
	recorded, problem := snapshot.Recall(anEngine(), noon())
	if problem != nil {
		t.Fatalf("nothing is recalled: %v", problem)
	}
	m.desired.setTopology(true, recorded.Topology)
	plan := Make(snapshot, m.desired, nil, m.clock)
	if again := Make(snapshot, m.desired, nil, m.clock); !reflect.DeepEqual(plan, again) {
		t.Fatalf("the same snapshot gave two plans: %v and %v", actionsOf(plan), actionsOf(again))
	}
	m.check(t, plan)
	for i, action := range plan.Actions {
		if i < steps {
			m.carryOut(t, action)
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
		if topology, isLost := m.lostData(); isLost {
			m.Database.Annotations = map[string]string{v1alpha1.AnnotationReinitialize: topology.DataID}
			m.hasServed = false
		} else if len(plan.Actions) == 0 {
			m.restartServer() // one that had fallen silent
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
	if !m.Members[0].isPrimary() {
		t.Fatalf("seed %d came to rest without a primary", seed)
	}
	if claim := m.Objects[theClaimRef()]; claim == nil || claim.GetLabels()[v1alpha1.LabelOwnerUID] != string(ourUID) {
		t.Fatalf("seed %d came to rest with the claim %v", seed, claim)
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
