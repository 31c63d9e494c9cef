// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestADatabaseIsRollingFromTheChangeOn holds that the status doesn't say that
// the spec is carried out in the moment between the change of the workload and
// its controller's look at it.
func TestADatabaseIsRollingFromTheChangeOn(t *testing.T) {
	lags := func(b *snapshotBuilder) {
		b.Objects[b.workloadRef()].SetGeneration(2)
		switch workload := b.Objects[b.workloadRef()].(type) {
		case *appsv1.StatefulSet:
			workload.Status.ObservedGeneration = 1
		case *appsv1.Deployment:
			workload.Status.ObservedGeneration = 1
		}
	}
	isNew := func(b *snapshotBuilder) { b.Objects[b.workloadRef()].SetGeneration(1) }
	for sentence, row := range map[string]struct {
		database *snapshotBuilder
		change   func(*snapshotBuilder)
		reason   string
	}{
		"a StatefulSet whose controller has seen the change": {aDatabase(), func(*snapshotBuilder) {}, v1alpha1.ReasonAvailable},
		"a StatefulSet whose controller hasn't":              {aDatabase(), lags, v1alpha1.ReasonRolling},
		"a StatefulSet that its controller never saw":        {aDatabase(), isNew, v1alpha1.ReasonAvailable},
		"a Deployment whose controller has seen the change":  {aDatabase().ephemeral(), func(*snapshotBuilder) {}, v1alpha1.ReasonEphemeralStorage},
		"a Deployment whose controller hasn't":               {aDatabase().ephemeral(), lags, v1alpha1.ReasonRolling},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := row.database.withMember()
			wanted := desired(b)
			wanted.setTopology(b.isDurable(), settled(b))
			b.withAll(wanted)
			row.change(b)
			status := Report(b.build(), wanted, Make(b.build(), wanted, nil, noon()), Outcome{IsDone: true}, noon())
			if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason; got != row.reason {
				t.Errorf("Ready has the reason %s, want %s", got, row.reason)
			}
		})
	}
}

// Members whose source had greater limits keep them until it has lesser ones, and it
// doesn't hand over meanwhile.
func TestLesserLimitsAreThePrimarysFirst(t *testing.T) {
	const lesser = "it has greater limits than it is to have"
	for sentence, row := range map[string]struct {
		former, old []int // who has the former limits, and who runs the old revision
		away        bool  // the primary
		want        map[string]string
	}{
		"nobody goes, where all have what they are to have": {nil, nil, false, map[string]string{}},
		"the primary before the replicas that wait for it":  {[]int{1, 2}, []int{0}, false, map[string]string{"db-0": "it runs revision old, wanted is new"}},
		"nobody, while it starts again":                     {[]int{1, 2}, nil, true, map[string]string{}},
		"then the replicas":                                 {[]int{1, 2}, nil, false, map[string]string{"db-1": lesser, "db-2": lesser}},
		"a primary that took another one's place first":     {[]int{0, 1}, nil, false, map[string]string{"db-0": lesser}},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := threeMembers(0)
			topology := Topology{
				State: TopologyInitialized, Epoch: 1, DataID: "data", Primary: "db-0", Holder: "volume-0",
				Members: []TopologyMember{{"db-1", "volume-1"}, {"db-2", "volume-2"}}, Required: 1,
			}
			b.withTopology(topology)
			b.with(KindStatefulSet, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}})
			for i := range b.Members {
				b.Members[i].Probe.Engine.HasFormerLimits = slices.Contains(row.former, i)
				if slices.Contains(row.old, i) {
					b.Members[i].Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old"
				}
			}
			b.UnservedSince = noon().Add(-failoverPatience)
			if row.away {
				silent(&b.Members[0])
				b.Members[0].Pod.DeletionTimestamp = new(metav1.NewTime(noon()))
			}
			snapshot, got := b.build(), map[string]string{}
			for _, member := range snapshot.Members {
				if why := snapshot.outdated(member); why != "" {
					got[member.Pod.Name] = why
				}
			}
			if !maps.Equal(got, row.want) {
				t.Errorf("to be replaced are %v, want %v", got, row.want)
			}
			next := snapshot.group(topology, anEngine(), noon()).next()
			for _, action := range next.actions {
				if _, isFence := action.(Fence); isFence || strings.HasPrefix(action.String(), "demote") {
					t.Errorf("the primary is succeeded: %s", action)
				}
			}
			if next.topology.Primary != "db-0" || next.topology.IsHandingOver {
				t.Errorf("the primary is succeeded: %+v", next.topology)
			}
		})
	}
}

// Without the operator's password nobody can be asked who could take the primary's
// place. Where the replicas have their accounts from the primary, it is started again
// first, and stays what it is; elsewhere it is the last.
func TestTheOperatorsNewPasswordComesFromThePrimary(t *testing.T) {
	for sentence, row := range map[string]struct {
		copies bool
		newer  []int // who was started with the new Secret
		lets   []int // who lets the operator in
		want   string
	}{
		"the primary first, where it brings the password": {true, nil, nil, "db-1"},
		"also past a replica that was started before it":  {true, []int{0}, nil, "db-1"},
		"and then the replicas, one by one":               {true, []int{1}, []int{1}, "db-0"},
		"nobody, while the first of them isn't back":      {true, []int{0, 1}, []int{1}, ""},
		"the second": {true, []int{0, 1}, []int{0, 1}, "db-2"},
		"the primary, which hasn't said yet that it has it":   {true, []int{1}, nil, ""},
		"a replica first, where each has accounts of its own": {false, nil, nil, "db-0"},
		"and then the other one":                              {false, []int{0}, []int{0}, "db-2"},
		"and the primary last":                                {false, []int{0, 2}, []int{0, 2}, "db-1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := threeMembers(1)
			topology := Topology{
				State: TopologyInitialized, Epoch: 1, DataID: "data", Primary: "db-1", Holder: "volume-1",
				Members: []TopologyMember{{"db-0", "volume-0"}, {"db-2", "volume-2"}}, Required: 1,
			}
			b.withTopology(topology)
			secret := asObject(b.Database, aSecret("db-admin", false))
			secret.SetCreationTimestamp(metav1.NewTime(noon()))
			b.with(KindSecret, secret)
			roles := map[string]v1alpha1.MemberRole{}
			for i := range b.Members {
				b.Members[i].Pod.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
				if slices.Contains(row.newer, i) {
					b.Members[i].Pod.CreationTimestamp = metav1.NewTime(noon().Add(time.Second))
				}
				if slices.Contains(row.lets, i) {
					roles[b.Members[i].Pod.Name] = v1alpha1.MemberRoleReplica
				} else {
					silent(&b.Members[i])
				}
			}
			wanted := desired(b)
			wanted.CopiesAccounts = row.copies
			wanted.Topology = TopologyStep{Topology: topology, move: move{roles: roles}}
			var plan Plan
			rollMember(&plan, b.build(), wanted)
			var evicted []string
			for _, action := range plan.Actions {
				if evict, isEvict := action.(Evict); isEvict {
					evicted = append(evicted, evict.Pod)
				}
			}
			if got := strings.Join(evicted, " "); got != row.want {
				t.Errorf("replaced is %q, want %q", got, row.want)
			}
		})
	}
}
