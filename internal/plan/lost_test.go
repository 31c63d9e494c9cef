// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// threeMembers is a database of which nobody knows the topology, and of which these
// members take writes.
func threeMembers(writable ...int) *snapshotBuilder {
	b := aDatabase().marked(theClaim)
	b.Database.Spec.Replicas = new(int32(3))
	for i := range 3 {
		b.withMember(func(m *Member) {
			m.Pod.Name, m.Pod.UID = fmt.Sprintf("db-%d", i), types.UID(fmt.Sprintf("uid-of-db-%d", i))
			m.Probe.Engine.Progress.Position = "abc"
			if !slices.Contains(writable, i) {
				notPromoted(m)
			}
		})
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("data-db-%d", i), UID: types.UID(fmt.Sprintf("volume-%d", i))}}
		claim.Labels = b.Objects[Ref{KindVolumeClaim, "data-db-0"}].GetLabels()
		claim.Annotations = b.Objects[Ref{KindVolumeClaim, "data-db-0"}].GetAnnotations()
		b.with(KindVolumeClaim, claim)
	}
	return b
}

// lastSeen has the operator remember a topology.
func (b *snapshotBuilder) lastSeen(topology Topology) *snapshotBuilder {
	b.LastSeen = map[Ref]metav1.Object{b.topologyRef(): &corev1.ConfigMap{Data: topology.Data()}}
	return b
}

func TestALostTopologyNamesNobodyWithoutKnowing(t *testing.T) {
	remembered := Topology{
		State: TopologyInitialized, Epoch: 7, DataID: "data", Primary: "db-1", Holder: "volume-1",
		Members: []TopologyMember{{"db-0", "volume-0"}, {"db-2", "volume-2"}}, Required: 1,
	}
	unused := noon().Unix()
	for sentence, row := range map[string]struct {
		database *snapshotBuilder
		primary  string
		epoch    int64
		required int
	}{
		"the only one that takes writes is it":                          {threeMembers(1), "db-1", unused, 0},
		"nobody is, if none takes writes":                               {threeMembers(), "", unused, 0},
		"nor if two do":                                                 {threeMembers(0, 1), "", unused, 0},
		"all is as it was last seen, if that is so":                     {threeMembers(1).lastSeen(remembered), "db-1", 7, 1},
		"what was last seen doesn't count where another one is writing": {threeMembers(2).lastSeen(remembered), "db-2", unused, 0},
		"nor where none is":                                             {threeMembers().lastSeen(remembered), "", unused, 0},
		"what was found out by nobody stays so":                         {threeMembers().withTopology(Topology{State: TopologyInitialized, Epoch: 5, DataID: "data"}), "", 5, 0},
		"until one is alone in taking writes":                           {threeMembers(2).withTopology(Topology{State: TopologyInitialized, Epoch: 5, DataID: "data"}), "db-2", 5, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			recorded, problem := row.database.build().Recall(anEngine(), noon())
			if problem != nil {
				t.Fatal(problem)
			}
			got := recorded.Topology
			if got.State != TopologyInitialized || got.Primary != row.primary || got.Epoch != row.epoch || got.Required != row.required {
				t.Errorf("got %+v, want %+v", got.Topology, row)
			}
		})
	}
}

func TestTheStepsWhereThePrimaryIsForgotten(t *testing.T) {
	forgotten := func(writable ...string) *groupBuilder {
		return aGroup().with(func(g *group) {
			g.topology.Primary, g.topology.Holder, g.topology.Members, g.topology.Required = "", "", nil, 0
			for i := range g.peers {
				p := &g.peers[i]
				p.role, p.replication = v1alpha1.MemberRoleReplica, Replication{Source: "db-9"}
				if slices.Contains(writable, p.name()) {
					p.role = v1alpha1.MemberRolePrimary
				}
			}
		})
	}
	forced := func(g *group) { g.forced = true }
	fences := []string{"fence Pod db-0", "fence Pod db-1", "fence Pod db-2"}
	for sentence, row := range map[string]struct {
		group   *groupBuilder
		primary string
		actions []string
		message string
	}{
		"none is promoted, and a human is asked": {forgotten(), "", nil, "coolops.cn/force-failover=7"},
		"of two that take writes none is touched": {
			forgotten("db-0", "db-2"), "", nil, "Pods db-0 and db-2 take writes",
		},
		"nor where a human says that the primary is gone": {forgotten("db-0", "db-2").with(forced), "", nil, "Pods db-0 and db-2 take writes"},
		"with a human's word all are fenced":              {forgotten().with(forced), "", fences, ""},
		"and the most advanced is named":                  {forgotten().with(forced).fencedOff("db-0", "db-1", "db-2").behind("db-0", "db-1"), "db-2", nil, ""},
		"but none of data that have parted":               {forgotten().with(forced).fencedOff("db-0", "db-1", "db-2").with(func(g *group) { g.peer("db-1").progress.Position = "abd" }), "", nil, "can't be compared"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next()
			var actions []string
			for _, action := range got.actions {
				actions = append(actions, action.String())
			}
			message := ""
			if got.finding != nil {
				message = got.finding.Message
			}
			if got.topology.Primary != row.primary || !slices.Equal(actions, row.actions) || !strings.Contains(message, row.message) || (row.message == "") != (message == "") {
				t.Errorf("records %q, does %q and says %q; want %+v", got.topology.Primary, actions, message, row)
			}
			if len(got.roles) > 0 {
				t.Errorf("labels %v", got.roles)
			}
		})
	}
}

// The name of a Deployment's pod may end in a digit.
func TestNobodyFollowsThePodOfADeployment(t *testing.T) {
	for _, engine := range playedEngines() {
		for _, name := range []string{"db-6f9c7d-99cv6", "db-6f9c7d-bcdfg", "db-6f9c7d-24568"} {
			b := aDatabase().ephemeral().withMember(func(m *Member) { m.Pod.Name = name })
			topology := settled(b).Topology
			topology.Primary = name
			if got := b.build().size(topology, anEngine()); got != 1 {
				t.Errorf("%s: %d members are to run", name, got)
			}
			g := b.build().group(topology, anEngine(), noon())
			g.engine = engine
			if got := g.next(); !got.topology.equal(topology) || got.finding != nil || len(got.actions) > 0 {
				t.Errorf("%s: the topology is to be %+v, what is told is %v, and what is done %v", name, got.topology, got.finding, got.actions)
			}
		}
	}
}
