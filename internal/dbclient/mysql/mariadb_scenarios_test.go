//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// writer writes rows to whoever is the primary, and remembers which were
// acknowledged.
type writer struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	to     running
	acked  []int
	last   time.Time
	maxGap time.Duration
}

// write begins to write with the numbers from 1000 on.
func (c *cluster) write(to running) *writer {
	ctx, cancel := context.WithCancel(c.t.Context())
	w := &writer{cancel: cancel, done: make(chan struct{}), to: to, last: time.Now()}
	go func() {
		defer close(w.done)
		for i := 1000; ctx.Err() == nil; i++ {
			w.mu.Lock()
			app := w.to.app(c.t)
			w.mu.Unlock()
			_, err := app.ExecContext(ctx, fmt.Sprintf("INSERT INTO app.t VALUES (%d, 'x')", i))
			_ = app.Close() // the answer tells
			if err != nil {
				continue
			}
			w.mu.Lock()
			w.acked = append(w.acked, i)
			w.maxGap = max(w.maxGap, time.Since(w.last))
			w.last = time.Now()
			w.mu.Unlock()
		}
	}()
	c.t.Cleanup(func() { cancel(); <-w.done })
	return w
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *writer) moveTo(to running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
}

// writes waits until that many more rows are written.
func (c *cluster) writes(w *writer, more int) {
	c.t.Helper()
	before := w.count()
	await(c.t, "rows are written", func() bool { return w.count() >= before+more })
}

// stop ends the writer, and looks that a member has all that was acknowledged.
func (c *cluster) stop(w *writer, members ...running) {
	c.t.Helper()
	w.cancel()
	<-w.done
	for _, member := range members {
		c.isSettled(member)
		has := map[string]bool{}
		for value := range strings.FieldsSeq(c.rows(member)) {
			has[value] = true
		}
		for _, value := range w.acked {
			if !has[strconv.Itoa(value)] {
				c.t.Errorf("%s lacks row %d, which was acknowledged", member.Name(), value)
			}
		}
	}
	c.t.Logf("%d rows, and at most %s between two of them", len(w.acked), w.maxGap.Round(time.Millisecond))
}

// isSettled waits until a member has all that the member has that its source
// says; the primary always has.
func (c *cluster) isSettled(r running) {
	c.t.Helper()
	source := c.state(r).Replication.Source
	for _, member := range c.members {
		if member.Host() == source {
			c.hasAll(r, member)
		}
	}
}

func handOver(t *testing.T, image string) {
	c := newCluster(t, image, 3)
	first, second, third := c.members[0], c.members[1], c.members[2]
	c.follow(second, first, true)
	c.follow(third, first, true)
	c.require(first)
	w := c.write(first)
	c.writes(w, 20)
	for round := range 3 {
		measured(t, fmt.Sprintf("handover %d", round), func() {
			c.demote(first)
			want := c.state(first)
			if want.Role != v1alpha1.MemberRoleReplica || want.Replication.Source != "" {
				t.Errorf("a demoted primary says %+v", want)
			}
			c.awaitState(second, "has all that the primary had", func(state plan.EngineState) bool {
				return state.Progress.IsDrained && c.order(state, want) == plan.OrderSame
			})
			c.promote(second, 1)
			w.moveTo(second)
			c.follow(first, second, true)
			c.follow(third, second, true)
		})
		c.writes(w, 20)
		first, second = second, first
	}
	c.demoted(second)
	c.stop(w, first, second, third)
}

// demoted looks that a former primary is none after a restart, too.
func (c *cluster) demoted(r running) {
	c.t.Helper()
	r.Kill()
	c.again(r)
	if state := c.state(r); state.Role != v1alpha1.MemberRoleReplica {
		c.t.Errorf("a demoted primary says %+v after a restart", state)
	}
}

func sayTheSame(t *testing.T, image string) {
	c := newCluster(t, image, 2)
	primary, replica := c.members[0], c.members[1]
	c.follow(replica, primary, true)
	c.require(primary)
	c.awaitState(replica, "is current", func(state plan.EngineState) bool { return state.Replication.IsCurrent })
	c.awaitState(primary, "knows its follower", func(state plan.EngineState) bool { return state.Replication.Followers == replica.Name() })
	for _, member := range c.members {
		connection, first := c.operator(member), c.state(member)
		calls, began := 0, time.Now()
		for time.Since(began) < 3*time.Second {
			if state, err := connection.State(t.Context()); err == nil && state != first {
				t.Fatalf("%s says %+v, and first %+v", member.Name(), state, first)
			}
			calls++
		}
		t.Logf("%s of %s: %s a call", first.Role, image, (time.Since(began) / time.Duration(calls)).Round(10*time.Microsecond))
	}
	w := c.write(primary)
	for _, member := range c.members {
		connection, first, before := c.operator(member), c.state(member), w.count()
		for w.count() < before+200 {
			if state, err := connection.State(t.Context()); err == nil && plan.IsNews(first, state) {
				t.Fatalf("while rows are written %s says %+v, and first %+v", member.Name(), state, first)
			}
		}
	}
	c.stop(w, replica)

	// One that has much to catch up with isn't current until it has.
	replica.Stop()
	execute(
		t, primary.client(t, "operator", adminPassword), "USE app", "SET GLOBAL rpl_semi_sync_master_enabled = OFF", "SET SESSION timestamp = UNIX_TIMESTAMP() - 60",
		"INSERT INTO app.t SELECT seq, REPEAT('x', 100) FROM seq_100000_to_200000", "DELETE FROM app.t WHERE i >= 100000", "SET SESSION timestamp = DEFAULT",
	)
	// From before its start, as the operator looks.
	connection := c.operator(replica)
	if _, err := connection.State(t.Context()); err == nil {
		t.Error("it answers after its end")
	}
	replica.Restart()
	want := c.state(primary)
	early := 0
	c.awaitStateBy(connection, replica, "has caught up", func(state plan.EngineState) bool {
		has := state.Progress.IsDrained && c.order(state, want).Has()
		if state.Replication.IsCurrent && !has {
			early++
		}
		return has && state.Replication.IsCurrent
	})
	if early > 0 {
		t.Errorf("it said %d times too early that it is current", early)
	}
}

func changePassword(t *testing.T, image string) {
	c := newCluster(t, image, 3)
	// What a replica is left with is longer than a server remembers.
	const password = "another'one\\ \"of the operator's, which is longer than the forty characters that a server keeps, and than ninety-six"
	for _, i := range []int{1, 2, 0} {
		member := c.withAdminPassword(c.members[i], password)
		member.Stop()
		c.again(member)
	}
	c.insert(c.members[0], 2)
	for _, replica := range c.members[1:] {
		c.hasAll(replica, c.members[0])
		c.follow(replica, c.members[0], true)
	}
	c.require(c.members[0])
	c.insert(c.members[0], 3)
	for _, replica := range c.members[1:] {
		c.hasAll(replica, c.members[0])
	}
	for _, member := range c.members {
		for _, file := range []string{"master.info", "relay-log.info"} {
			content, err := os.ReadFile(filepath.Join(member.DataFolder(), "db", file))
			if err == nil && strings.Contains(string(content), "another'one") {
				t.Errorf("the operator's password stands in %s of %s", file, member.Name())
			}
		}
		if strings.Contains(member.Output(), replicatorPassword(password)) {
			t.Errorf("%s prints the password that members copy with", member.Name())
		}
	}
}

func copyAllKinds(t *testing.T, image string) {
	c := newCluster(t, image, 1)
	primary := c.members[0]
	execute(
		t, primary.app(t),
		"CREATE TABLE app.`odd``name` (b LONGBLOB, c VARCHAR(20) CHARACTER SET latin1, j JSON, g INT AS (1+1) STORED, d DATETIME(6), f DOUBLE)",
		"INSERT INTO app.`odd``name` (b, c, j, d, f) VALUES (UNHEX(REPEAT('00FF0A5C27', 1000)), 'é', '{\"a\": 1}', '2026-01-02 03:04:05.678901', 1e-300)",
		"CREATE VIEW app.v AS SELECT i FROM app.t",
		"CREATE FUNCTION app.f() RETURNS INT RETURN 7",
		"CREATE PROCEDURE app.p() SELECT 'a;b'",
		"CREATE TRIGGER app.g BEFORE INSERT ON app.t FOR EACH ROW SET NEW.s = CONCAT(NEW.s, '!')",
		"CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM app.t WHERE i < 0",
		"CREATE SEQUENCE app.q START WITH 5",
		"SELECT NEXTVAL(app.q)",
	)
	// A member of a newer version copies from an older one, too: so a database gets
	// to it one member after the other.
	newer := c.product
	newer.image = "mariadb:11.8"
	for i, p := range []product{c.product, newer} {
		replica := c.add(p)
		c.serves(replica)
		c.hasAll(replica, primary)
		c.insert(primary, 2+i)
		c.hasAll(replica, primary)
		c.checkKinds(primary, replica)
	}
}

// checkKinds looks that a member has the data of the other in all their kinds.
func (c *cluster) checkKinds(primary, replica running) {
	c.t.Helper()
	for _, query := range []string{
		"SELECT CONCAT_WS('/', MD5(b), LENGTH(b), c, HEX(c), j, g, d, f) FROM app.`odd``name`",
		"SELECT CONCAT(i, s) FROM app.t ORDER BY i",
		"SELECT i FROM app.v ORDER BY i",
		"SELECT app.f()",
		"SELECT CONCAT_WS('/', ROUTINE_NAME, ROUTINE_TYPE, DEFINER, ROUTINE_DEFINITION) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' ORDER BY 1",
		"SELECT CONCAT_WS('/', TRIGGER_NAME, DEFINER, ACTION_STATEMENT) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'app'",
		"SELECT CONCAT_WS('/', EVENT_NAME, DEFINER, EVENT_DEFINITION) FROM information_schema.EVENTS",
		"SELECT next_not_cached_value FROM app.q",
		"SELECT CONCAT_WS('/', DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'app'",
		"SELECT COUNT(*) FROM mysql.user WHERE User IN ('app', 'operator', 'replicator')",
		"SELECT COUNT(*) FROM mysql.user WHERE User = 'boot'",
	} {
		if got, want := answer(c.t, c.admin(replica), query), answer(c.t, c.admin(primary), query); got != want || got == "" {
			c.t.Errorf("%s: the replica has %q, and the primary %q", query, got, want)
		}
	}
	if got, want := c.state(replica), c.state(primary); got.Progress.Position != want.Progress.Position {
		c.t.Errorf("the replica is at %q, and the primary at %q", got.Progress.Position, want.Progress.Position)
	}
}

func copyInterrupted(t *testing.T, image string) {
	c := newCluster(t, image, 1)
	primary := c.members[0]
	execute(t, primary.app(t), "CREATE TABLE app.large (i INT AUTO_INCREMENT PRIMARY KEY, s LONGTEXT)", "INSERT INTO app.large (s) VALUES (REPEAT('x', 4000000))")
	for range 4 {
		execute(t, primary.app(t), "INSERT INTO app.large (s) SELECT s FROM app.large")
	}
	primary.Kill()
	replica := c.add(c.product)
	await(t, "it says that it waits", func() bool { return strings.Contains(replica.Output(), "Waiting for orders-0") })
	began := time.Now()
	if exit := replica.Stop(); exit.Code != 143 || time.Since(began) > 5*time.Second {
		t.Errorf("SIGTERM ended it with %d after %s", exit.Code, time.Since(began))
	}
	replica.Restart()
	await(t, "it gives up", func() bool { return replica.TerminationMessage() != "" })
	if exit := replica.Wait(); exit.Code != 69 || !strings.Contains(replica.TerminationMessage(), "orders-0") || strings.Count(exit.Output, "Waiting for") != 1 {
		t.Errorf("it ended with %d and %q:\n%s", exit.Code, replica.TerminationMessage(), exit.Output)
	}
	c.again(primary)

	copying := func() bool {
		if !strings.Contains(replica.Output(), "private.sock") { // what is there is of the former life
			return false
		}
		entries, err := filepath.Glob(filepath.Join(replica.DataFolder(), "init", "app", "large*"))
		return err == nil && len(entries) > 0
	}
	replica.Restart()
	await(t, "it copies", copying)
	replica.Kill()
	replica.Restart()
	await(t, "it copies again", copying)
	primary.Kill()
	if exit := replica.Wait(); exit.Code != 1 {
		t.Errorf("a copy that breaks off ends it with %d:\n%s", exit.Code, exit.Output)
	}
	if _, err := os.Stat(filepath.Join(replica.DataFolder(), "db")); err == nil {
		t.Error("half a copy is in place")
	}
	c.again(primary)
	c.again(replica)
	c.hasAll(replica, primary)
	if got := answer(t, c.admin(replica), "SELECT COUNT(*) FROM app.large"); got != "16" {
		t.Errorf("it has %s rows", got)
	}
}

func fenceSilent(t *testing.T, image string) {
	c := newCluster(t, image, 2)
	primary, replica := c.members[0], c.members[1]
	c.follow(replica, primary, true)
	c.require(primary)
	c.hasAll(replica, primary)
	primary.Isolate()
	measured(t, "the fence stands while the replica knows nothing of it", func() { c.fence(replica) })
	c.follow(replica, primary, true)
	measured(t, "a replica knows that its source is silent", func() {
		c.awaitState(replica, "doesn't receive", func(state plan.EngineState) bool {
			return !state.Replication.IsReceiving && !state.Replication.IsCurrent && state.Replication.Failure == "it can't reach its source"
		})
	})
	measured(t, "the fence stands", func() { c.fence(replica) })
	measured(t, "the promotion", func() { c.promote(replica, 0) })
	c.insert(replica, 2)
	primary.Rejoin()
	c.demote(primary)
	c.follow(primary, replica, false)
	c.hasAll(primary, replica)
	if got := c.rows(primary); got != "1 2" {
		t.Errorf("the former primary has %q", got)
	}
}

func unexecutable(t *testing.T, image string) {
	c := newCluster(t, image, 2)
	primary, replica := c.members[0], c.members[1]
	execute(t, c.admin(replica), "SET SESSION sql_log_bin = OFF", "INSERT INTO app.t VALUES (2, 'other')")
	c.insert(primary, 2, 3)
	c.awaitState(replica, "says that it can't", func(state plan.EngineState) bool {
		return state.Replication.IsApart && strings.Contains(state.Replication.Failure, rowExists) && !state.Progress.IsDrained && !state.Replication.IsCurrent
	})
	// After a restart it isn't known any more how far it was.
	replica.Kill()
	c.again(replica)
	if state := c.state(replica); state.Progress.Position != "" || state.Progress.IsDrained || state.Replication.Failure == "" || state.Replication.IsReceiving {
		t.Errorf("it says %+v", state)
	}
	connection := c.operator(replica)
	for what, err := range map[string]error{
		"following": connection.Follow(t.Context(), plan.Source{Member: primary.Name(), Host: primary.Host(), Port: mariadb.Port}),
		"promotion": connection.Promote(t.Context(), plan.Acknowledgement{}),
	} {
		if !errors.Is(err, errNotExecuted) {
			t.Errorf("%s gives %v", what, err)
		}
	}
	replica.Stop()
	c.tell(plan.TopologyCloneVariable, replica.Name()+":again")
	c.again(replica)
	c.hasAll(replica, primary)
	if got, want := answer(t, c.admin(replica), "SELECT CONCAT(i, s) FROM app.t"), answer(t, c.admin(primary), "SELECT CONCAT(i, s) FROM app.t"); got != want {
		t.Errorf("it has %q, and the primary %q", got, want)
	}
}
