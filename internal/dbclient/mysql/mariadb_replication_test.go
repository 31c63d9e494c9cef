//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// The first ones are what each change is tried with; all of them, with each
// version, take some minutes.
func TestMembersOfMariaDB(t *testing.T) {
	scenarios := []struct {
		sentence string
		run      func(*testing.T, string)
	}{
		{"fail over without losing what was acknowledged", failOver},
		{"copy and go on after each restart", copyAndGoOn},
		{"hand over without losing a row", handOver},
		{"say the same while nothing happens, and are current while rows are written", sayTheSame},
		{"get another password one after the other", changePassword},
		{"have all kinds of data", copyAllKinds},
		{"copy anew after an interruption", copyInterrupted},
		{"are fenced also where the source is silent", fenceSilent},
		{"say what they can't execute", unexecutable},
	}
	images := []string{"mariadb:11.8", "mariadb:10.11"}
	if testing.Short() {
		scenarios, images = scenarios[:1], images[:1]
	}
	for _, image := range images {
		for _, scenario := range scenarios {
			t.Run(image+" "+scenario.sentence, func(t *testing.T) { scenario.run(t, image) })
		}
	}
}

func failOver(t *testing.T, image string) {
	c := newCluster(t, image, 3)
	first, second, third := c.members[0], c.members[1], c.members[2]
	c.follow(second, first, true)
	c.follow(third, first, true)
	c.require(first)
	c.insert(first, 2)
	if state := c.state(first); state.Replication.Required != "1 of " || state.Replication.Source != "" || !state.Progress.IsDrained {
		t.Errorf("the primary says %+v", state)
	}
	c.checkWaiting(first, second, third)

	// What only the second one acknowledged, and hasn't executed.
	c.hasAll(third, first)
	c.fence(third)
	c.hasAll(second, first)
	execute(t, c.admin(second), "STOP SLAVE SQL_THREAD")
	c.insert(first, 10, 11)
	execute(t, first.app(t), "CREATE TABLE app.u (i INT)")
	c.insert(first, 12)
	behind := c.state(second)
	if behind.Progress.IsDrained || c.order(behind, c.state(first)) != plan.OrderSame || c.order(c.state(third), behind) != plan.OrderBehind {
		t.Errorf("the second one says %+v", behind)
	}
	if err := c.operator(second).Promote(t.Context(), plan.Acknowledgement{}); !errors.Is(err, errNotExecuted) {
		t.Errorf("the promotion of one that hasn't executed all gives %v", err)
	}
	first.Kill()
	second.Kill()
	measured(t, "a replica that has something left to execute starts", func() { c.again(second) })
	if got := c.rows(second); got != "1 2 3 10 11 12" {
		t.Fatalf("what was acknowledged is lost: the second one has %q", got)
	}
	if state := c.state(second); !state.Progress.IsDrained || c.order(state, behind) != plan.OrderSame {
		t.Errorf("it says %+v, and before %+v", state, behind)
	}
	c.checkFenced(first, second, third)
	lost := c.begin(first, 20)
	c.waits(first, lost)
	first.Kill()
	<-lost.done
	c.takeOver(first, second, third)
}

// checkWaiting looks that a commit waits where nobody acknowledges, and what can be
// done meanwhile.
func (c *cluster) checkWaiting(primary running, replicas ...running) {
	c.t.Helper()
	operator := c.operator(primary)
	for _, replica := range replicas {
		c.hasAll(replica, primary)
		c.fence(replica)
	}
	c.awaitState(primary, "has no followers", func(state plan.EngineState) bool { return state.Replication.Followers == "" })
	waiting := c.begin(primary, 3)
	c.waits(primary, waiting)
	c.awaitState(primary, "answers", func(state plan.EngineState) bool { return state.Role == v1alpha1.MemberRolePrimary })
	if err := operator.SetPassword(c.t.Context()); err != nil {
		c.t.Errorf("the application's password can't be set: %v", err)
	}
	c.do("refuse to be demoted", primary, func(ctx context.Context, connection *Connection) error {
		if err := connection.Demote(ctx); !errors.Is(err, errUnderway) {
			return errors.Join(errors.New("it isn't refused"), err)
		}
		return nil
	})
	if state := c.state(primary); state.Role != v1alpha1.MemberRolePrimary || state.Replication.Required != "1 of " || waiting.isDone() {
		c.t.Errorf("after that it says %+v", state)
	}
	// One that doesn't acknowledge doesn't count.
	c.follow(replicas[0], primary, false)
	c.awaitState(replicas[0], "has received what waits", func(state plan.EngineState) bool {
		return c.order(state, c.state(primary)) == plan.OrderSame
	})
	if waiting.isDone() {
		c.t.Error("a commit rests on a replica that isn't to acknowledge")
	}
	// One that has it already isn't sent it again, and acknowledges what comes next.
	c.follow(replicas[0], primary, true)
	c.awaitState(primary, "is told of the commit", func(plan.EngineState) bool { return waiting.isDone() })
	for _, replica := range replicas {
		c.follow(replica, primary, true)
	}
	if waiting.err != nil {
		c.t.Errorf("the commit gives %v", waiting.err)
	}
	if state := c.state(replicas[0]); !state.Replication.Acknowledges || state.Replication.Source != primary.Host() {
		c.t.Errorf("a replica that acknowledges says %+v", state)
	}
}

// checkFenced looks that a fence holds over a kill and a restart, with the former
// primary within reach. It is the primary again at the end.
func (c *cluster) checkFenced(primary running, replicas ...running) {
	c.t.Helper()
	for _, replica := range replicas {
		c.fence(replica)
	}
	c.again(primary)
	for _, replica := range replicas {
		before := c.state(replica)
		replica.Kill()
		c.again(replica)
		state := c.state(replica)
		if state.Replication.Source != "" || state.Replication.IsReceiving || state.Replication.Acknowledges || c.order(state, before) != plan.OrderSame {
			c.t.Errorf("%s is fenced, and says %+v", replica.Name(), state)
		}
	}
	if state := c.state(primary); state.Replication.Followers != "" || state.Replication.Required != "1 of " || state.Role != v1alpha1.MemberRolePrimary {
		c.t.Errorf("the primary says %+v", state)
	}
}

// takeOver makes the second member the primary after the first, which is killed
// and has a commit more. It comes back, and copies the data anew.
func (c *cluster) takeOver(former, next, other running) {
	c.t.Helper()
	if got := c.order(c.state(next), c.state(other)); got != plan.OrderAhead {
		c.t.Errorf("the one that acknowledged is %d to the other", got)
	}
	measured(c.t, "promotion", func() { c.promote(next, 1) })
	c.follow(other, next, true)
	c.insert(next, 30)
	c.hasAll(other, next)

	c.tell(plan.TopologyPrimaryVariable, next.Name())
	c.again(former)
	state := c.state(former)
	if state.Role != v1alpha1.MemberRoleReplica || state.Replication.Source != "" || c.order(state, c.state(next)) != plan.OrderApart {
		c.t.Errorf("the former primary says %+v", state)
	}
	if _, err := former.app(c.t).Exec("INSERT INTO app.t VALUES (40, 'x')"); !isError(err, readOnlyError) {
		c.t.Errorf("the former primary answers %v to a write", err)
	}
	if got := c.rows(former); !strings.Contains(got, "20") {
		c.t.Errorf("the former primary has %q: its last commit was to be there", got)
	}
	// It isn't let in by the engine, either.
	c.follow(former, next, false)
	c.awaitState(former, "is apart", func(state plan.EngineState) bool { return state.Replication.IsApart })

	former.Stop()
	c.tell(plan.TopologyCloneVariable, "other:1 "+former.Name()+":2")
	measured(c.t, "the data are copied anew", func() { c.again(former) })
	c.hasAll(former, next)
	for _, member := range []running{former, other} {
		if got, want := c.rows(member), c.rows(next); got != want || strings.Contains(got, "20") {
			c.t.Errorf("%s has %q, and the primary %q", member.Name(), got, want)
		}
	}
	// Once.
	file := filepath.Join(former.DataFolder(), "db", "ibdata1")
	copied, err := os.Stat(file)
	former.Kill()
	c.again(former)
	if kept, keptErr := os.Stat(file); errors.Join(err, keptErr) != nil || !os.SameFile(copied, kept) {
		c.t.Errorf("the next start copies once more (%v, %v)", err, keptErr)
	}
	c.hasAll(former, next)
}

func copyAndGoOn(t *testing.T, image string) {
	c := newCluster(t, image, 3)
	primary, second, third := c.members[0], c.members[1], c.members[2]
	c.insert(primary, 2, 3)
	for _, replica := range []running{second, third} {
		c.hasAll(replica, primary)
		if got := c.rows(replica); got != "1 2 3" {
			t.Errorf("%s has %q", replica.Name(), got)
		}
		if state := c.state(replica); state.Role != v1alpha1.MemberRoleReplica || state.Replication.Acknowledges || state.Replication.Failure != "" {
			t.Errorf("%s says %+v", replica.Name(), state)
		}
	}
	c.awaitState(primary, "knows its followers", func(state plan.EngineState) bool { return state.Replication.Followers == "orders-1,orders-2" })

	// With nobody's help.
	second.Kill()
	c.insert(primary, 4)
	measured(t, "a replica is killed, and is current again", func() {
		c.again(second)
		c.hasAll(second, primary)
	})
	primary.Kill()
	c.again(primary)
	if state := c.state(primary); state.Role != v1alpha1.MemberRolePrimary {
		t.Errorf("the primary says %+v", state)
	}
	third.Stop()
	c.again(third)
	// Another address, and nothing left but the volume.
	second.Replace(time.Minute)
	c.serves(second)
	c.insert(primary, 5)
	for _, replica := range []running{second, third} {
		c.hasAll(replica, primary)
		if got := c.rows(replica); got != "1 2 3 4 5" {
			t.Errorf("%s has %q", replica.Name(), got)
		}
	}
	// A member that has lost its volume has none of its own history.
	third.Delete(0)
	third.LoseVolume()
	third.Create()
	c.serves(third)
	c.hasAll(third, primary)
	if got := c.order(c.state(third), c.state(second)); got != plan.OrderSame {
		t.Errorf("one that copied the data again is %d to another", got)
	}
}

// An operator of today may meet a member that a script of yesterday started.
func TestAMemberWhoseTableIsOfAnOlderScriptIsPromoted(t *testing.T) {
	p := mariaDBProduct()
	member := p.start(t, p.member(""))
	execute(
		t, member.client(t, p.engine.AdminUsername(), adminPassword), "SET SESSION sql_log_bin = OFF",
		"ALTER TABLE database_manager.member DROP COLUMN host, DROP COLUMN port, DROP COLUMN acknowledges, DROP COLUMN required",
	)
	if state := member.state(t); state.Role != v1alpha1.MemberRoleReplica || state.Progress.Position != "/" {
		t.Errorf("it says %+v", state)
	}
	member.promote(t)
	member.Kill()
	member.again()
	if state := member.state(t); state.Role != v1alpha1.MemberRolePrimary || state.Replication.Required != "none" {
		t.Errorf("after a restart it says %+v", state)
	}
}
