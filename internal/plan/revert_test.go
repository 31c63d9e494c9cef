// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// stuck are states in which a member never becomes ready by itself.
func stuck() map[string]func(*Member) {
	waiting := func(reason string) func(*Member) {
		return func(m *Member) {
			m.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
			}}
			m.Probe = Probe{}
		}
	}
	return map[string]func(*Member){
		"no node has room": func(m *Member) {
			m.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}
			m.Probe = Probe{}
		},
		"the image doesn't exist": waiting("ImagePullBackOff"),
		"it ends again and again": waiting("CrashLoopBackOff"),
		"it runs and doesn't answer": func(m *Member) {
			m.Pod.Status.Conditions = nil
			m.Probe.Answers = false
		},
		"nothing is known of it": func(m *Member) {
			m.Pod.Status = corev1.PodStatus{}
			m.Probe = Probe{}
		},
	}
}

// TestARevertFreesAMemberThatIsStuckOnWhatWasWrong breaks a database by its
// spec, takes that back, and expects that nobody has to delete anything.
func TestARevertFreesAMemberThatIsStuckOnWhatWasWrong(t *testing.T) {
	for sentence, wrong := range stuck() {
		t.Run(sentence, func(t *testing.T) {
			m := newModel(1)
			m.convergeOn(t, 1)
			workload := &m.desired.Children[theWorkload]
			works := workload.Hash
			// The bad spec is applied, the member replaced, and the new one stuck.
			workload.Hash = "bad"
			for len(m.Members) == 0 || m.Members[0].runs() != "bad" {
				m.pass(t, len(m.desired.Children))
				m.settle()
			}
			wrong(&m.Members[0])
			if plan := m.pass(t, 0); len(plan.Actions) > 0 {
				t.Fatalf("a member that is stuck on what is wanted is disrupted: %v", actionsOf(plan))
			}
			workload.Hash = works
			var actions []string
			for range 3 {
				actions = append(actions, actionsOf(m.pass(t, len(m.desired.Children)))...)
				m.settle()
			}
			want := []string{"apply StatefulSet db: the intent changed", "evict Pod db-0: it runs revision bad, wanted is " + works}
			if !slices.Equal(actions, want) {
				t.Errorf("actions are\n\t%s\nwant\n\t%s", strings.Join(actions, "\n\t"), strings.Join(want, "\n\t"))
			}
			m.convergeOn(t, 1)
		})
	}
}

// runs returns the revision of a member.
func (m Member) runs() string { return m.Pod.Labels["controller-revision-hash"] }

// TestEachChildThatIsMissingIsMadeAndNoOther takes away every combination of
// children, as a crash at any moment, or any user, could.
func TestEachChildThatIsMissingIsMadeAndNoOther(t *testing.T) {
	wanted := desired(aDatabase())
	all := append([]Child{wanted.Stem}, wanted.Children...)
	for missing := range 1 << len(all) {
		database := aDatabase()
		wanted := desired(database)
		whole(database, &wanted)
		var want []string
		for i, child := range all {
			if missing&(1<<i) != 0 {
				delete(database.Objects, child.Ref)
				want = append(want, "create "+child.String())
			}
		}
		got := slices.DeleteFunc(actionsOf(Make(database.build(), wanted, nil, noon())), func(action string) bool {
			return strings.HasPrefix(action, "use ")
		})
		if !slices.Equal(got, want) {
			t.Errorf("actions are %v, want %v", got, want)
		}
	}
}

// silentPods are pods that lack what a kubelet says of others.
func silentPods() []*corev1.Pod {
	return []*corev1.Pod{
		{},
		{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: make([]corev1.PodCondition, 1), ContainerStatuses: make([]corev1.ContainerStatus, 1)}},
		{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}}},
	}
}

// silence has an object of a database say nothing but whose it is.
func (b *snapshotBuilder) silence(ref Ref) {
	bare := asObject(b.Database, Child{Ref: ref})
	bare.SetAnnotations(nil)
	if secret, isSecret := bare.(*corev1.Secret); isSecret {
		secret.Data = nil
	}
	b.with(ref.Kind, bare)
}

// TestWhatSaysNothingIsNoReasonToPanic plans on objects that lack all that an
// object can lack: one of them at a time, and all together.
func TestWhatSaysNothingIsNoReasonToPanic(t *testing.T) {
	wanted := desired(aDatabase())
	var refs []Ref
	for _, child := range slices.Concat([]Child{wanted.Stem}, wanted.Children, wanted.Claims) {
		refs = append(refs, child.Ref)
	}
	silenced := [][]Ref{nil, refs}
	for i := range refs {
		silenced = append(silenced, refs[i:i+1])
	}
	for _, silent := range silenced {
		for _, pod := range silentPods() {
			for _, isEphemeral := range []bool{false, true} {
				database := aDatabase()
				if isEphemeral {
					database.ephemeral()
				}
				planOnSilence(t, database, silent, pod)
				database.Strangers = []*corev1.Pod{pod}
				planOnSilence(t, database, silent, pod)
			}
		}
	}
}

func planOnSilence(t *testing.T, database *snapshotBuilder, silent []Ref, pod *corev1.Pod) {
	t.Helper()
	wanted := desired(database)
	wanted.setTopology(database.isDurable(), settled(database))
	database.withAll(wanted)
	for _, ref := range silent {
		database.silence(ref)
	}
	database.Members = []Member{{Pod: pod}}
	snapshot := database.build()
	_, problem := snapshot.Recall(anEngine(), noon())
	mustRefuse := slices.ContainsFunc(silent, func(ref Ref) bool { return ref.Kind == KindSecret || ref == snapshot.topologyRef() })
	if (problem != nil) != mustRefuse {
		t.Errorf("where %v say nothing, the problem is %v", silent, problem)
	}
	for _, problem := range []*Problem{nil, problem, {}} {
		todo := Make(snapshot, wanted, problem, noon())
		if status := Report(snapshot, wanted, todo, Outcome{}, noon()); len(status.Conditions) == 0 || status.AvailableReplicas != 0 {
			t.Errorf("where %v say nothing, the status is %+v", silent, status)
		}
	}
}
