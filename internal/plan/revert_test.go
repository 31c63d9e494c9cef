// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
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

// TestWhatSaysNothingIsNoReasonToPanic plans on objects that lack all that an
// object can lack.
func TestWhatSaysNothingIsNoReasonToPanic(t *testing.T) {
	for sentence, database := range map[string]*snapshotBuilder{"with a volume": aDatabase(), "without": aDatabase().ephemeral()} {
		t.Run(sentence, func(t *testing.T) {
			wanted := desired(database)
			wanted.setTopology(database.isDurable(), settled(database))
			database.withAll(wanted)
			for ref, object := range database.Objects {
				bare := asObject(database.Database, Child{Ref: ref})
				bare.SetAnnotations(nil)
				if secret, isSecret := bare.(*corev1.Secret); isSecret {
					secret.Data = nil
				}
				bare.SetUID(object.GetUID())
				database.with(ref.Kind, bare)
			}
			database.Members = []Member{{Pod: &corev1.Pod{}}, {Pod: &corev1.Pod{Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: make([]corev1.PodCondition, 1), ContainerStatuses: make([]corev1.ContainerStatus, 1),
			}}}}
			database.Strangers = []*corev1.Pod{{}}
			snapshot := database.build()
			if _, problem := snapshot.Recall(); problem == nil {
				t.Error("a topology and Secrets without data are taken for whole")
			}
			for _, problem := range []*Problem{nil, {Reason: v1alpha1.ReasonInvalidSpec}} {
				todo := Make(snapshot, wanted, problem, noon())
				if status := Report(snapshot, todo, Outcome{}, noon()); len(status.Conditions) == 0 {
					t.Error("the status says nothing")
				}
			}
			empty := Snapshot{Database: &v1alpha1.DatabaseManager{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}}
			if status := Report(empty, Make(empty, Desired{}, &Problem{}, noon()), Outcome{}, noon()); status.AvailableReplicas != 0 {
				t.Errorf("of a database without anything it says %+v", status)
			}
		})
	}
}
