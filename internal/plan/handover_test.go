// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestTheStepsOfAHandover(t *testing.T) {
	asks := func(name string) func(*group) { return func(g *group) { g.asked = name } }
	demoted := func(g *group) {
		g.unservedSince = noon()
		g.peer("db-0").role, g.peer("db-0").replication = v1alpha1.MemberRoleReplica, Replication{}
	}
	byStart := func(g *group) { g.engine = playedEngines()[0] }
	for sentence, row := range map[string]struct {
		group    *groupBuilder
		primary  string   // that is recorded then
		switched string   // to whom it is recorded to have switched
		actions  []string // what is done
	}{
		"nothing, where nobody has the name that is asked for":   {aGroup().with(asks("db-3")), "db-0", "", nil},
		"nothing, where no member has it":                        {aGroup().with(asks("orders-1")), "db-0", "", nil},
		"nothing, where nobody is asked for":                     {aGroup(), "db-0", "", nil},
		"the primary takes no writes any more":                   {aGroup().with(asks("db-1")), "db-0", "", []string{"demote Pod db-0"}},
		"not for one that lacks something":                       {aGroup().with(asks("db-1")).behind("db-1"), "db-0", "", nil},
		"not for another one instead":                            {aGroup().with(asks("db-1")).silent("db-1"), "db-0", "", nil},
		"the one that is asked for is recorded once it has all":  {aGroup().with(asks("db-1")).with(demoted), "db-1", "", nil},
		"nobody else, though another one has all sooner":         {aGroup().with(asks("db-2")).with(demoted).behind("db-2"), "db-0", "", nil},
		"but for a while":                                        {aGroup().with(asks("db-2")).with(demoted).behind("db-2").with(func(g *group) { g.unservedSince = noon().Add(-wishPatience) }), "db-1", "", nil},
		"that it has taken its place is recorded, too":           {aGroup().with(asks("db-0")), "db-0", "db-0", nil},
		"what was done isn't done again after a failover":        {aGroup().with(asks("db-1")).with(func(g *group) { g.topology.SwitchedTo = "db-1" }), "db-0", "db-1", nil},
		"a wish that was taken back is forgotten":                {aGroup().with(func(g *group) { g.topology.SwitchedTo = "db-1" }), "db-0", "", nil},
		"a primary that leaves hands over to whoever can":        {aGroup().with(func(g *group) { g.peer("db-0").isLeaving = true }), "db-0", "", []string{"demote Pod db-0"}},
		"where only a start demotes, that is recorded first":     {aGroup().with(byStart).with(asks("db-1")), "db-0", "", nil},
		"and then the primary is replaced":                       {aGroup().with(byStart).with(asks("db-1")).handingOver(), "db-0", "", []string{"evict Pod db-0: another member becomes the primary"}},
		"not before it has executed what it received":            {aGroup().with(demoted).with(func(g *group) { g.peer("db-0").progress.IsDrained = false }), "db-0", "", nil},
		"a primary that is demoted, and isn't to be, takes over": {aGroup().with(demoted), "db-0", "", []string{"promote Pod db-0, with acknowledgement by 1 of "}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := row.group.next()
			var actions []string
			for _, action := range got.actions {
				actions = append(actions, action.String())
			}
			if got.topology.Primary != row.primary || got.topology.SwitchedTo != row.switched || !slices.Equal(actions, row.actions) {
				t.Errorf("records %s (switched to %q) and does %q, want %s (%q) and %q",
					got.topology.Primary, got.topology.SwitchedTo, actions, row.primary, row.switched, row.actions)
			}
		})
	}
}

// The same name counts once, also if there was no such member for a while.
func TestAWishThatWasGrantedStaysGranted(t *testing.T) {
	group := aGroup().with(func(g *group) { g.topology.SwitchedTo, g.asked, g.wanted = "db-1", "db-1", 1 })
	if got := group.next().topology.SwitchedTo; got != "db-1" {
		t.Errorf("after db-1 was scaled away, the wish that was granted is %q", got)
	}
}

// Who connects to the address of a pod that is gone waits for seconds, and who
// connects to a Service without one is refused at once.
func TestAPrimaryThatAStopDemotesLosesItsLabelBeforeItStops(t *testing.T) {
	for leaving, want := range map[time.Duration]v1alpha1.MemberRole{
		0:                         v1alpha1.MemberRolePrimary,
		ServesOn - closesFor - 1:  v1alpha1.MemberRolePrimary,
		ServesOn - closesFor:      "",
		ServesOn + 10*time.Second: "",
	} {
		group := aGroup().handingOver().with(func(g *group) {
			g.engine, g.asked = playedEngines()[0], "db-1"
			g.peer("db-0").isLeaving, g.leavingSince = true, noon().Add(-leaving)
		})
		if got := group.next(); got.roles["db-0"] != want || got.wait != urgently {
			t.Errorf("after %s it is labelled %q, and is looked at again after %s; want %q", leaving, got.roles["db-0"], got.wait, want)
		}
		// Its replicas have lost it already.
		if got := group.behind("db-1", "db-2").next(); got.roles["db-0"] != want {
			t.Errorf("after %s, left by its replicas, it is labelled %q, want %q", leaving, got.roles["db-0"], want)
		}
	}
}

// A primary that a start demotes is replaced for that, and its replicas lose their
// source before it is back: what was decided is withdrawn only while it stays.
func TestAHandoverByStartIsntWithdrawnOnceItIsUnderway(t *testing.T) {
	asked := func() *groupBuilder {
		return aGroup().with(func(g *group) { g.engine, g.asked = playedEngines()[0], "db-1" }).handingOver().behind("db-1", "db-2")
	}
	leaving := func(g *group) { g.peer("db-0").isLeaving = true }
	if next := asked().next(); next.topology.IsHandingOver {
		t.Error("a primary that stays, and that nobody can follow, is still to hand over")
	}
	if next := asked().with(leaving).next(); !next.topology.IsHandingOver {
		t.Error("a primary that leaves starts as the primary again")
	}
	back := func(g *group) {
		g.unservedSince, g.asked = noon(), ""
		g.peer("db-0").role, g.peer("db-0").replication = v1alpha1.MemberRoleReplica, Replication{}
	}
	if next := aGroup().with(func(g *group) { g.engine = playedEngines()[0] }).handingOver().with(back).next(); next.topology.Primary == "db-0" {
		t.Error("a primary that was replaced in order to hand over is the primary still, though others have all that it has")
	}
}
