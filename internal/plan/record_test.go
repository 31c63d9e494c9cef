// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// ofFour is aGroup with a fourth member, which has all and isn't named yet.
func ofFour() *groupBuilder {
	return aGroup().with(func(g *group) {
		fourth := g.peers[2]
		fourth.server.Pod, fourth.holder = PodRef{Name: "db-3", UID: "pod-3"}, "volume-3"
		g.peers, g.wanted = append(g.peers, fourth), 4
	})
}

// TestWhatIsRecordedIsNeverStrongerThanWhatIsInEffect counts on the record: by it a
// failover knows how many replicas surely include one with each commit.
func TestWhatIsRecordedIsNeverStrongerThanWhatIsInEffect(t *testing.T) {
	named := func(g *group) { g.topology.Members = append(g.topology.Members, TopologyMember{"db-3", "volume-3"}) }
	waitsForTwo := func(g *group) { g.peer("db-0").replication.Required = Acknowledgement{Count: 2}.String() }
	ofTwo := func(g *group) { g.wanted = 2 }
	silenced := func(g *group) { g.peer("db-2").replication.Acknowledges = false }
	attached := func(g *group) { g.engine = playedEngines()[3] }
	for sentence, row := range map[string]struct {
		group    *groupBuilder
		members  []string // that are recorded then
		required int      // how many of them
		actions  []string
	}{
		"one more is named before anything rests on it":      {ofFour(), []string{"db-1", "db-2", "db-3"}, 1, nil},
		"then the primary waits for two of them":             {ofFour().with(named), []string{"db-1", "db-2", "db-3"}, 1, []string{"have Pod db-0 wait for acknowledgement by 2 of "}},
		"not before as many have what was acknowledged":      {ofFour().with(named).with(waitsForTwo).behind("db-2", "db-3"), []string{"db-1", "db-2", "db-3"}, 1, nil},
		"and once they have, that is recorded":               {ofFour().with(named).with(waitsForTwo), []string{"db-1", "db-2", "db-3"}, 2, nil},
		"one that is to go stays named while it has a say":   {aGroup().with(ofTwo), []string{"db-1", "db-2"}, 1, []string{"have Pod db-2 follow db-0"}},
		"and not any longer":                                 {aGroup().with(ofTwo).with(silenced), []string{"db-1"}, 1, nil},
		"where being attached is a say, it is detached":      {aGroup().with(ofTwo).with(attached), []string{"db-1", "db-2"}, 1, []string{"fence Pod db-2"}},
		"one that was given another volume isn't counted on": {aGroup().with(func(g *group) { g.peer("db-2").holder = "another" }).silent("db-2"), []string{"db-1"}, 1, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next()
			var actions []string
			for _, action := range got.actions {
				actions = append(actions, action.String())
			}
			if !slices.Equal(got.topology.names(), row.members) || got.topology.Required != row.required || !slices.Equal(actions, row.actions) {
				t.Errorf("records %d of %v and does %q, want %d of %v and %q", got.topology.Required, got.topology.names(), actions, row.required, row.members, row.actions)
			}
		})
	}
}

// TestAMemberJoins has one follow the primary that doesn't yet.
func TestAMemberJoins(t *testing.T) {
	unnamed := func(g *group) { g.topology.Members = g.topology.Members[:1] }
	followsAnother := func(g *group) { g.peer("db-2").replication.Source = "db-1.db-members.shop.svc" }
	for sentence, row := range map[string]struct {
		group        *groupBuilder
		action       string
		acknowledges bool
		copies       string // who is to give up its data
	}{
		"with a say, where that is recorded":                     {aGroup().fencedOff("db-2"), "have Pod db-2 follow db-0", true, ""},
		"without one, where it isn't":                            {aGroup().with(unnamed).fencedOff("db-2"), "have Pod db-2 follow db-0", false, ""},
		"once it receives from nobody else, and can be compared": {aGroup().with(followsAnother), "fence Pod db-2", false, ""},
		"with a copy of the primary's data, where its own have parted": {
			aGroup().fencedOff("db-2").with(func(g *group) { g.peer("db-2").progress.Position, g.peer("db-0").askedAt = "abX", noon().Add(1) }), "", false, "db-2",
		},
		"not by what the primary said before": {
			aGroup().fencedOff("db-2").with(func(g *group) { g.peer("db-2").progress.Position = "abcd" }), "", false, "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next()
			action, acknowledges := "", false
			if len(got.actions) > 0 {
				action = got.actions[0].String()
			}
			if follow, isFollow := firstFollow(got); isFollow {
				acknowledges = follow.Source.Acknowledges
			}
			copies := strings.Join(slices.Collect(maps.Keys(got.topology.Clones)), " ")
			if action != row.action || acknowledges != row.acknowledges || copies != row.copies {
				t.Errorf("it is told to %q (acknowledges: %t, copies: %q), want %q (%t, %q)", action, acknowledges, copies, row.action, row.acknowledges, row.copies)
			}
			if role := got.roles["db-0"]; role != v1alpha1.MemberRolePrimary {
				t.Errorf("the primary is labelled %q", role)
			}
		})
	}
}
