// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// groupBuilder makes a database of three in sync mode: db-0 takes writes, the
// others follow it, have all of it, and one of them is required.
type groupBuilder struct{ group }

func aGroup() *groupBuilder {
	b := &groupBuilder{group{
		database: "orders", engine: playedEngines()[1], wanted: 3, isSync: true,
		topology: Topology{
			State: TopologyInitialized, Epoch: 7, DataID: "data", Primary: "db-0", Holder: "volume-0",
			Members: []TopologyMember{{"db-1", "volume-1"}, {"db-2", "volume-2"}}, Required: 1,
		},
		host: func(name string) string { return name + ".db-members.shop.svc" }, port: 1234, now: noon(),
	}}
	for i := range 3 {
		b.peers = append(b.peers, peer{
			server: Server{Pod: PodRef{Name: fmt.Sprintf("db-%d", i), UID: types.UID(fmt.Sprintf("pod-%d", i))}},
			holder: types.UID(fmt.Sprintf("volume-%d", i)), answers: true, askedAt: noon(), role: v1alpha1.MemberRoleReplica,
			label:       v1alpha1.MemberRoleReplica,
			replication: Replication{Source: "db-0.db-members.shop.svc", IsReceiving: true, IsCurrent: true, Acknowledges: true},
			progress:    Progress{Position: "abc", IsDrained: true},
		})
	}
	primary := &b.peers[0]
	primary.role, primary.label = v1alpha1.MemberRolePrimary, v1alpha1.MemberRolePrimary
	primary.replication = Replication{Required: Acknowledgement{Count: 1}.String()}
	return b
}

// with changes the group, and without takes members away.
func (b *groupBuilder) with(change func(*group)) *groupBuilder {
	change(&b.group)
	return b
}

func (b *groupBuilder) without(names ...string) *groupBuilder {
	b.peers = slices.DeleteFunc(b.peers, func(p peer) bool { return slices.Contains(names, p.name()) })
	return b
}

// silent has members answer no more, the primary for long.
func (b *groupBuilder) silent(names ...string) *groupBuilder {
	for _, name := range names {
		b.peer(name).answers = false
		if name == b.topology.Primary {
			b.unservedSince = noon().Add(-time.Hour)
		}
	}
	return b
}

// fencedOff has the replicas receive nothing any more.
func (b *groupBuilder) fencedOff(names ...string) *groupBuilder {
	for _, name := range names {
		b.peer(name).replication = Replication{}
	}
	return b
}

// behind has replicas lack something.
func (b *groupBuilder) behind(names ...string) *groupBuilder {
	for _, name := range names {
		b.peer(name).replication.IsCurrent, b.peer(name).progress.Position = false, "a"
	}
	return b
}

// async has nobody wait for a replica.
func (b *groupBuilder) async() *groupBuilder {
	b.isSync, b.topology.Required, b.peer("db-0").replication.Required = false, 0, ""
	return b
}

// handingOver has it recorded that the primary's next start is a replica's.
func (b *groupBuilder) handingOver() *groupBuilder {
	b.topology.IsHandingOver = true
	return b
}

// unestablished has no replica that is known to have the data.
func (b *groupBuilder) unestablished() *groupBuilder {
	b.topology.Members, b.topology.Required, b.peer("db-0").replication.Required = nil, 0, ""
	return b
}

func TestWhatIsMissingOfTheReplicationIsTold(t *testing.T) {
	for sentence, row := range map[string]struct {
		group     *groupBuilder
		reason    string
		isTrouble bool
		message   string
	}{
		"nothing, if all is well":                     {aGroup(), "", false, ""},
		"ReplicaBehind with who lacks something":      {aGroup().behind("db-2"), v1alpha1.ReasonReplicaBehind, false, "Missing are db-2."},
		"ReplicaBehind with who doesn't exist":        {aGroup().without("db-1"), v1alpha1.ReasonReplicaBehind, false, "Missing are db-1."},
		"SyncNotEstablished while nobody has it":      {aGroup().unestablished().behind("db-1", "db-2"), v1alpha1.ReasonSyncNotEstablished, false, "Missing are db-1, db-2."},
		"ReplicaBehind while nobody has it, in async": {aGroup().async().unestablished().behind("db-1", "db-2"), v1alpha1.ReasonReplicaBehind, false, "Missing are db-1, db-2."},
		"SyncNotEstablished if the only one with the data is away": {
			aGroup().unestablished().silent("db-0"), v1alpha1.ReasonSyncNotEstablished, false, "its return is waited for",
		},
		"SwitchoverWaiting if the one that is asked for isn't ready for it": {
			aGroup().with(func(g *group) { g.asked = "db-2" }).behind("db-2"), v1alpha1.ReasonSwitchoverWaiting, false, "take the place of Pod db-0",
		},
		"SwitchoverWaiting if the primary has to go and nobody is ready": {
			aGroup().with(func(g *group) { g.mustMove = true }).behind("db-1", "db-2"), v1alpha1.ReasonSwitchoverWaiting, false, "take the place of Pod db-0",
		},
		"QuorumLost with who is missing, how many are needed, and the human's answer": {
			aGroup().silent("db-0", "db-2").fencedOff("db-1"), v1alpha1.ReasonQuorumLost, true,
			"of the 2 members that may have its last writes 1 answer, of which 2 are needed: none is promoted. Missing are db-2. " +
				"It goes on when the primary is back, or enough of them. If the primary is gone for good, and writes may be lost, run: " +
				"kubectl annotate databasemanager orders coolops.cn/force-failover=7 --overwrite",
		},
		"QuorumLost if the replicas never had what was acknowledged": {
			aGroup().silent("db-0").with(func(g *group) { g.topology.Required = 0 }), v1alpha1.ReasonQuorumLost, true,
			"no other member is known to have all that it acknowledged",
		},
		"QuorumLost if what they have has parted": {
			aGroup().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.peer("db-1").progress.Position = "abd" }),
			v1alpha1.ReasonQuorumLost, true, "can't be compared",
		},
		"PrimaryUnreachable if nobody says that it has stopped, in async": {
			aGroup().async().silent("db-0"), v1alpha1.ReasonPrimaryUnreachable, true, "it may still take writes, which a failover would lose",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := row.group.next().finding
			if found == nil {
				found = &Finding{}
			}
			if found.Reason != row.reason || found.IsTrouble != row.isTrouble || !strings.Contains(found.Message, row.message) {
				t.Errorf("it says %+v, want %s (trouble: %t) with %q", *found, row.reason, row.isTrouble, row.message)
			}
		})
	}
}

func TestTheStepsOfAFailover(t *testing.T) {
	for sentence, row := range map[string]struct {
		group   *groupBuilder
		primary string   // that is recorded then
		fences  []string // who is told to receive nothing
		stopped string   // the pod in which no server may run any more
	}{
		"nothing, while the primary may just be starting": {
			aGroup().silent("db-0").with(func(g *group) { g.unservedSince = noon().Add(-time.Second) }), "db-0", nil, "",
		},
		"at once, where its pod is being deleted": {
			aGroup().silent("db-0").with(func(g *group) { g.unservedSince, g.peer("db-0").isLeaving = noon(), true }), "db-0", []string{"db-1", "db-2"}, "",
		},
		"at once, where it is to come back as a replica": {
			aGroup().handingOver().silent("db-0").with(func(g *group) { g.unservedSince = noon() }), "db-0", []string{"db-1", "db-2"}, "",
		},
		"first all that may be attached are fenced, those that leave too": {
			aGroup().silent("db-0").with(func(g *group) { g.peer("db-2").isLeaving = true }), "db-0", []string{"db-1", "db-2"}, "",
		},
		"a member that isn't named is fenced too, and not counted": {
			aGroup().silent("db-0").fencedOff("db-1").with(func(g *group) { g.topology.Members = g.topology.Members[:1] }), "db-0", []string{"db-2"}, "",
		},
		"then the one that has most is recorded": {
			aGroup().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.peer("db-2").progress.Position = "abcd" }), "db-2", nil, "",
		},
		"too few have answered, and none is": {aGroup().silent("db-0", "db-1").fencedOff("db-2"), "db-0", nil, ""},
		"one whose position isn't known doesn't count": {
			aGroup().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.peer("db-1").progress.Position = "" }), "db-0", nil, "",
		},
		"and keeps no others from it, of which there are enough": {
			ofFour().silent("db-0").fencedOff("db-1", "db-2", "db-3").with(func(g *group) {
				g.topology.Members, g.topology.Required = append(g.topology.Members, TopologyMember{"db-3", "volume-3"}), 2
				g.peer("db-1").progress.Position = ""
			}), "db-2", nil, "",
		},
		"one that answers in the primary's place, on other data, isn't it": {
			aGroup().with(func(g *group) { g.peer("db-0").holder, g.unservedSince = "another", noon().Add(-time.Hour) }), "db-0", []string{"db-1", "db-2"}, "",
		},
		"one that is on other data than those that are named doesn't count": {
			aGroup().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.peer("db-1").holder = "another" }), "db-0", nil, "",
		},
		"too few have answered, and a human says that it may be": {
			aGroup().silent("db-0", "db-1").fencedOff("db-2").with(func(g *group) { g.forced = true }), "db-2", nil, "",
		},
		"in async, not before the primary is known to have stopped": {aGroup().async().silent("db-0").fencedOff("db-1", "db-2"), "db-0", nil, ""},
		"in async, its next start is made a replica's before anything": {
			aGroup().async().silent("db-0").with(func(g *group) { g.peer("db-0").isStopped = true }), "db-0", nil, "",
		},
		"in async, once its kubelet says that it has, which is looked at": {
			aGroup().async().handingOver().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.peer("db-0").isStopped = true }), "db-1", nil, "db-0",
		},
		"in async, once its pod is gone, which is looked at": {
			aGroup().async().handingOver().silent("db-0").fencedOff("db-1", "db-2").without("db-0"), "db-1", nil, "db-0",
		},
		"in async, at a human's word, whatever runs": {
			aGroup().async().silent("db-0").fencedOff("db-1", "db-2").with(func(g *group) { g.forced = true }), "db-1", nil, "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next()
			var fences []string
			for _, action := range got.actions {
				if fence, isFence := action.(Fence); isFence {
					fences = append(fences, fence.Pod.Name)
				}
			}
			if got.topology.Primary != row.primary || !slices.Equal(fences, row.fences) {
				t.Errorf("records %s and fences %v, want %s and %v", got.topology.Primary, fences, row.primary, row.fences)
			}
			if got.stopped != row.stopped {
				t.Errorf("%q has to have stopped, want %q", got.stopped, row.stopped)
			}
			if epoch := got.topology.Epoch; (epoch == 8) != (row.primary != "db-0") {
				t.Errorf("the epoch is %d", epoch)
			}
		})
	}
}

func TestLabelsSayWhoIsWho(t *testing.T) {
	const primary, replica = v1alpha1.MemberRolePrimary, v1alpha1.MemberRoleReplica
	for sentence, row := range map[string]struct {
		group *groupBuilder
		roles map[string]v1alpha1.MemberRole
	}{
		"the primary, and those that have its data": {aGroup(), map[string]v1alpha1.MemberRole{"db-0": primary, "db-1": replica, "db-2": replica}},
		"not one that is behind":                    {aGroup().behind("db-2"), map[string]v1alpha1.MemberRole{"db-0": primary, "db-1": replica, "db-2": ""}},
		"one that is silent keeps its own":          {aGroup().silent("db-2"), map[string]v1alpha1.MemberRole{"db-0": primary, "db-1": replica}},
		"the primary loses its own before the first is fenced": {
			aGroup().silent("db-0"), map[string]v1alpha1.MemberRole{"db-0": "", "db-1": replica, "db-2": replica},
		},
		"one that takes writes, and isn't the primary, has none": {
			aGroup().with(func(g *group) { g.peer("db-2").role = primary }), map[string]v1alpha1.MemberRole{"db-0": primary, "db-1": replica, "db-2": ""},
		},
		"a primary that takes no writes has none": {
			aGroup().with(func(g *group) { g.peer("db-0").role = replica }), map[string]v1alpha1.MemberRole{"db-0": "", "db-1": replica, "db-2": replica},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next().roles
			for _, name := range []string{"db-0", "db-1", "db-2"} {
				role, isDecided := got[name]
				want, isWanted := row.roles[name]
				if role != want || isDecided != isWanted {
					t.Errorf("%s is labelled %q (%t), want %q (%t)", name, role, isDecided, want, isWanted)
				}
			}
		})
	}
}

// TestAnySetThatAcknowledgesMeetsAnyThatIsCounted is the arithmetic of quorum.go.
func TestAnySetThatAcknowledgesMeetsAnyThatIsCounted(t *testing.T) {
	for n := 1; n < int(v1alpha1.MaxReplicas); n++ {
		for _, most := range []int{1, n} {
			k := acknowledgementsOf(n, most)
			if needed := neededOf(n, k); k < 1 || k+needed != n+1 || needed < 1 {
				t.Errorf("of %d replicas %d acknowledge and %d are needed", n, k, needed)
			}
		}
	}
	if needed := neededOf(4, acknowledgementsOf(4, 0)); needed <= 4 {
		t.Errorf("where nobody acknowledges %d of 4 are enough", needed)
	}
}

func TestAPodThatHasEndedIsNotLabelledThePrimary(t *testing.T) {
	snapshot := threeMembers(0).build()
	for name, role := range map[string]v1alpha1.MemberRole{"db-3": v1alpha1.MemberRoleReplica, "db-4": v1alpha1.MemberRolePrimary} {
		snapshot.Ended = append(snapshot.Ended, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelRole: string(role)},
		}})
	}
	var plan Plan
	labelMembers(&plan, snapshot, Desired{Members: 3})
	if got := actionsOf(plan); !slices.Equal(got, []string{"label Pod db-4 as nothing"}) {
		t.Errorf("actions are %v", got)
	}
}

func TestThePrimaryHasSuccessorsWhereEnoughAnswer(t *testing.T) {
	topology := Topology{
		State: TopologyInitialized, Epoch: 1, DataID: "data", Primary: "db-0", Holder: "volume-0",
		Members: []TopologyMember{{"db-1", "volume-1"}, {"db-2", "volume-2"}},
	}
	for sentence, row := range map[string]struct {
		required int
		silent   []int
		change   func(*Topology)
		want     bool
	}{
		"two of two, where one acknowledges":       {1, nil, nil, true},
		"one of two isn't enough":                  {1, []int{1}, nil, false},
		"but where both acknowledge":               {2, []int{1}, nil, true},
		"one is enough where nothing was promised": {0, []int{2}, nil, true},
		"none is where none answers":               {0, []int{1, 2}, nil, false},
		"the primary's own answer is no matter":    {1, []int{0}, nil, true},
		"one on another volume doesn't count":      {1, nil, func(t *Topology) { t.Members = []TopologyMember{{"db-1", "volume-1"}, {"db-2", "volume-9"}} }, false},
		"none is where none has the data":          {0, nil, func(t *Topology) { t.Members = nil }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			recorded := topology
			recorded.Required = row.required
			if row.change != nil {
				row.change(&recorded)
			}
			b := threeMembers(0).withTopology(recorded)
			for _, i := range row.silent {
				silent(&b.Members[i])
			}
			if got := b.build().HasSuccessors(); got != row.want {
				t.Errorf("has successors: %t", got)
			}
		})
	}
}
