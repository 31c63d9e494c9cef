//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"errors"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/dbclient"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// It is the whole way of a database in sync mode, from the first member to the old
// primary's return: what is acknowledged is there at each step.
func TestAFailoverLosesNothingThatWasAcknowledged(t *testing.T) {
	c := newCluster(t, "18", 3)
	app := c.app(0)
	app.mustQuery("CREATE TABLE t (i int)")
	c.synchronise()
	app.mustQuery("INSERT INTO t VALUES (1)")
	if state := c.await(0, "requires one", func(s plan.EngineState) bool { return s.Replication.Required == "1 of orders-1,orders-2" }); state.Replication.Source != "" {
		t.Errorf("it says %+v", state)
	}

	// Without a replica, a commit waits, and the operator doesn't.
	c.fence(1)
	c.fence(2)
	waiting := begin(c.app(0), "INSERT INTO t VALUES (2)")
	c.awaitWaiter(0)
	before := c.await(0, "is primary", isPrimary)
	if refused := (*dbclient.Refusal)(nil); !errors.As(c.asked[0].Demote(t.Context()), &refused) {
		t.Error("a primary can be demoted while it runs")
	}
	c.require(0, oneOf(1, 2))
	if waiting.isDone(t) {
		t.Fatal("a commit doesn't wait")
	}
	c.follow(1, 0, true)
	waiting.await(t)

	// The primary dies with a commit that nobody acknowledged.
	c.fence(1)
	begin(c.app(0), "INSERT INTO t VALUES (666)")
	c.awaitWaiter(0)
	died := time.Now()
	c.members[0].Kill()
	c.fence(1)
	c.fence(2)
	first, second := c.await(1, "is fenced", isFenced), c.await(2, "is fenced", isFenced)
	if order := compare(first, second); order != plan.OrderAhead {
		t.Fatalf("the one that acknowledged is %d to the other: %+v and %+v", order, first, second)
	}
	c.promote(1, oneOf(0, 2))
	c.follow(2, 1, true)
	c.app(1).mustQuery("INSERT INTO t VALUES (3)")
	t.Logf("writes are acknowledged again %s after the primary's death", time.Since(died))
	c.awaitRows(2, "SELECT string_agg(i::text, ',' ORDER BY i) FROM t", "1,2,3")

	// The old primary comes back. It has what nobody acknowledged, and takes no more.
	c.members[0].SetEnv(topologyOf(plan.TopologyInitialized, name(1)))
	c.members[0].Restart()
	old := c.await(0, "is fenced", isFenced)
	if old.RunID == before.RunID || !strings.Contains(c.members[0].Output(), "follows nobody until it is told to") {
		t.Errorf("it says %+v", old)
	}
	if order := compare(old, c.await(1, "is primary", isPrimary)); order != plan.OrderApart {
		t.Errorf("the old primary is %d to the new one", order)
	}
	if _, err := c.app(0).query("INSERT INTO t VALUES (667)"); code(err) != readOnly {
		t.Errorf("the old primary's answer to a write is %v", err)
	}

	// Told to follow all the same, it says that it can't; also after a restart.
	c.follow(0, 1, false)
	for range 2 {
		state := c.await(0, "says that it is apart", func(s plan.EngineState) bool { return s.Replication.IsApart })
		if state.Replication.Failure != "its data and its source's have parted" || state.Replication.IsReceiving || state.Replication.IsCurrent {
			t.Errorf("it says %+v", state)
		}
		c.members[0].Kill()
		c.members[0].Restart()
	}
	c.fence(0)

	// It gives up its data, once.
	c.members[0].Kill()
	c.members[0].SetEnv(topologyOf(plan.TopologyInitialized, name(1), "orders-2:x", "orders-0:again-1"))
	c.members[0].Restart()
	state := c.await(0, "is current", isCurrent)
	if state.Replication.Source != sourceOf(1, false).Host || state.Replication.Acknowledges || strings.Contains(c.members[0].Output(), "can't be rewound") {
		t.Errorf("it says %+v, and printed\n%s", state, c.members[0].Output())
	}
	c.awaitRows(0, "SELECT string_agg(i::text, ',' ORDER BY i) FROM t", "1,2,3")
	c.members[0].Kill()
	c.members[0].Restart()
	c.await(0, "is current", isCurrent)
	if strings.Contains(c.members[0].Output(), "rewind") || strings.Contains(c.members[0].Output(), "rewound") {
		t.Errorf("it gave up its data twice:\n%s", c.members[0].Output())
	}
}

func TestAPlannedHandOverLosesNothingAndTheOldPrimaryFollows(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "18", 3)
	c.app(0).mustQuery("CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
	c.synchronise()
	c.app(0).mustQuery("INSERT INTO t SELECT generate_series(1001, 2000)")
	stopped := time.Now()
	c.members[0].SetEnv(topologyOf(plan.TopologyInitialized, name(1)))
	if exit := c.members[0].Replace(patience); exit.Code != 0 {
		t.Errorf("it ended with %d", exit.Code)
	}
	old := c.await(0, "is fenced", isFenced)
	c.fence(1)
	if order := compare(old, c.await(1, "is fenced", isFenced)); order != plan.OrderSame {
		t.Fatalf("the old primary is %d to its successor", order)
	}
	c.promote(1, oneOf(0, 2))
	c.follow(2, 1, true)
	c.app(1).mustQuery("INSERT INTO t VALUES (2001)")
	t.Logf("a write was taken again %s after the old primary was asked to stop", time.Since(stopped))
	if order := compare(old, c.await(1, "is primary", isPrimary)); order != plan.OrderBehind {
		t.Errorf("the old primary is %d to the new one", order)
	}
	c.follow(0, 1, true)
	c.await(1, "has its followers", func(s plan.EngineState) bool { return s.Replication.Followers == "orders-0,orders-2" })
	for i := range c.members {
		c.awaitRows(i, "SELECT count(*), sum(i) FROM t", "2001\n2003001")
	}
}

func TestRolesSurviveRestarts(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "17", 3)
	c.app(0).mustQuery("CREATE TABLE t (i int)")
	c.synchronise()
	c.fence(2)
	for i, member := range c.members {
		if i == 1 {
			member.Delete(patience)
			member.Create()
			continue
		}
		member.Kill()
		member.Restart()
	}
	fenced := c.await(2, "is fenced", isFenced)
	primary := c.await(0, "is primary", isPrimary)
	if primary.Replication.Required != "1 of orders-1,orders-2" {
		t.Errorf("the primary says %+v", primary)
	}
	c.await(1, "is current, and acknowledges", func(s plan.EngineState) bool { return s.Replication.IsCurrent && s.Replication.Acknowledges })
	c.app(0).mustQuery("INSERT INTO t VALUES (1)")
	c.awaitRows(1, "SELECT i FROM t", "1")
	if now := c.await(2, "is fenced", isFenced); now.Progress.Position != fenced.Progress.Position {
		t.Errorf("the fenced one went on from %s to %s", fenced.Progress.Position, now.Progress.Position)
	}
	if followers := c.await(0, "is primary", isPrimary).Replication.Followers; followers != "orders-1" {
		t.Errorf("the followers are %q", followers)
	}
}

// What a replica has acknowledged, and not executed, is what a failover rests on.
func TestWhatIsAcknowledgedAndNotExecutedSurvivesAKill(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "18", 3)
	c.app(0).mustQuery("CREATE TABLE t (i int)")
	c.synchronise()
	c.fence(2)
	superuser, err := connect(t, c.members[1], engine.AdminUsername, c.password, database)
	if err != nil {
		t.Fatal(err)
	}
	superuser.mustQuery("SELECT pg_wal_replay_pause()")
	c.await(1, "has stopped executing", func(s plan.EngineState) bool {
		return strings.HasPrefix(s.Replication.Failure, "it has stopped executing")
	})
	c.app(0).mustQuery("INSERT INTO t SELECT generate_series(1, 100)")
	if got := c.app(1).mustQuery("SELECT count(*) FROM t"); got != "0" {
		t.Fatalf("it has executed %s rows", got)
	}
	behind := c.await(1, "is a replica", func(s plan.EngineState) bool { return s.Role == v1alpha1.MemberRoleReplica })
	if behind.Progress.IsDrained {
		t.Errorf("it says %+v", behind)
	}
	primary := c.await(0, "is primary", isPrimary)
	c.members[0].Kill()
	c.fence(1)
	if err := c.asked[1].Promote(t.Context(), oneOf(2)); err == nil || err.Error() != errUndrained.Error() {
		t.Errorf("promoted before it has executed all: %v", err)
	}
	if err := c.asked[1].Follow(t.Context(), sourceOf(2, true)); err == nil || err.Error() != errUndrained.Error() {
		t.Errorf("told to follow another before it has executed all: %v", err)
	}
	c.members[1].Kill()
	c.members[1].Restart()
	now := c.await(1, "is fenced", isFenced)
	if order := compare(now, behind); !order.Has() {
		t.Errorf("it has forgotten what it had: %d", order)
	}
	if order := compare(now, c.await(2, "is fenced", isFenced)); order != plan.OrderAhead {
		t.Errorf("it is %d to the other", order)
	}
	c.promote(1, plan.Acknowledgement{})
	c.awaitRows(1, "SELECT count(*) FROM t", "100")
	if order := compare(primary, c.await(1, "is primary", isPrimary)); order != plan.OrderBehind {
		t.Errorf("the old primary was %d to the new one", order)
	}
}
