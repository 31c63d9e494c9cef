//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// failOverMySQL kills a primary, of which one replica has not executed what it
// acknowledged.
func failOverMySQL(t *testing.T) {
	c := newMySQLCluster(t, 3)
	former, next, other := c.members[0], c.members[1], c.members[2]
	c.follow(next, former, true)
	c.follow(other, former, true)
	c.require(former, 1)
	execute(t, former.app(t), "INSERT INTO app.t VALUES (2, '')")
	c.checkSame(former, next, other)

	// One alone has it, and hasn't executed it.
	c.fence(other)
	blocker := c.admin(next)
	execute(t, blocker, "FLUSH TABLES WITH READ LOCK")
	execute(t, former.app(t), "INSERT INTO app.t VALUES (100, '')")
	c.fence(next)
	// Nobody has it, and nobody was told that it was done.
	lost := c.begin(former, 200)
	c.waits(former)
	if state := c.state(next); state.Progress.IsDrained || state.Replication.Source != "" || state.Replication.IsReceiving {
		t.Errorf("%s says %+v", next.Name(), state)
	}
	if err := c.operator(next).Promote(t.Context(), plan.Acknowledgement{}); err == nil || err.Error() != errUnexecuted.Error() {
		t.Errorf("to promote it gives %v", err)
	}
	// A fence holds, and what was received is there, after a restart.
	c.kill(next)
	c.kill(other)
	state := c.awaitState(next, "has executed what it had received", func(state plan.EngineState) bool { return state.Progress.IsDrained })
	if state.Replication != (plan.Replication{}) || !strings.Contains(c.rows(next), "100") {
		t.Errorf("%s says %+v, and has the rows %s", next.Name(), state, c.rows(next))
	}
	c.waits(former)
	former.Kill()
	await(t, "the client hears of it", lost.isDone)
	if lost.err == nil {
		t.Error("a commit that nobody has was acknowledged")
	}

	if got := c.order(next, other); got != plan.OrderAhead {
		t.Errorf("compared with %s, %s is %v", other.Name(), next.Name(), got)
	}
	began := time.Now()
	c.tell(plan.TopologyPrimaryVariable, next.Name())
	c.promote(next, 1)
	c.follow(other, next, true)
	execute(t, next.app(t), "INSERT INTO app.t VALUES (101, '')")
	t.Logf("from the promotion to the first write that another member has: %s", time.Since(began).Round(10*time.Millisecond))
	c.checkReturn(former, next)
	c.checkSame(next, other, former)
}

// checkReturn has a former primary come back, which has something that the new one
// lacks.
func (c *mysqlCluster) checkReturn(former, primary running) {
	c.Helper()
	former.Restart()
	c.serves(former)
	for range 2 {
		state := c.state(former)
		if state.Role != v1alpha1.MemberRoleReplica || state.Replication != (plan.Replication{}) {
			c.Errorf("the former primary says %+v", state)
		}
		if !strings.Contains(c.rows(former), "200") {
			c.Error("what was never acknowledged isn't there: the test shows nothing")
		}
		if _, err := former.app(c.T).Exec("INSERT INTO app.t VALUES (201, '')"); !isError(err, readOnlyError) {
			c.Errorf("a write gives %v", err)
		}
		c.kill(former)
	}
	if got := c.order(former, primary); got != plan.OrderApart {
		c.Errorf("compared with the new one, the former primary is %v", got)
	}
	c.tell(plan.TopologyCloneVariable, "orders-9:x "+former.Name()+":again "+primary.Name()+":never")
	began := time.Now()
	c.kill(former)
	c.isCurrent(former, primary)
	c.Logf("copied anew in %s", time.Since(began).Round(10*time.Millisecond))
	// Once is enough.
	mark := filepath.Join(former.DataFolder(), "db", "mark")
	writeFile(c.T, mark, "")
	c.kill(former)
	c.isCurrent(former, primary)
	if _, err := os.Stat(mark); err != nil {
		c.Errorf("the data were copied again: %v", err)
	}
	// It says nothing to a member that the topology calls the primary.
	c.kill(primary)
	if state := c.state(primary); state.Role != v1alpha1.MemberRolePrimary {
		c.Errorf("the primary says %+v", state)
	}
}

func interruptCopiesOfMySQL(t *testing.T) {
	c := newMySQLCluster(t, 1)
	primary := c.members[0]
	primary.Stop()
	waiting := c.add(c.product.member(filepath.Join(t.TempDir(), "data")))
	const said = "boot: Waiting for orders-0"
	await(t, "it says so", func() bool { return strings.Contains(waiting.Output(), said) })
	began := time.Now()
	if exit := waiting.Stop(); exit.Code != 143 || time.Since(began) > time.Second {
		t.Errorf("SIGTERM ended it with %d after %s", exit.Code, time.Since(began))
	}
	waiting.Restart()
	awaitWithin(t, 2*time.Minute, "it gives up", func() bool { return waiting.TerminationMessage() != "" })
	exit := waiting.Wait()
	if exit.Code != 69 || strings.Count(exit.Output, said) != 1 || !strings.Contains(waiting.TerminationMessage(), "orders-0") {
		t.Errorf("it ended with %d and %q:\n%s", exit.Code, waiting.TerminationMessage(), exit.Output)
	}
	if _, err := os.Stat(filepath.Join(waiting.DataFolder(), "db")); err == nil {
		t.Error("it has a data directory")
	}
	primary.Restart()
	c.serves(primary)
	// Killed in the middle of each step.
	for _, file := range []string{"init/copier/ibdata1", "init/db/ibdata1", "init/db/auto.cnf"} {
		waiting.Restart()
		await(t, file+" is there", func() bool {
			_, err := os.Stat(filepath.Join(waiting.DataFolder(), file))
			return err == nil
		})
		waiting.Signal(syscall.SIGKILL)
		waiting.Wait()
	}
	waiting.Restart()
	c.serves(waiting)
	c.isCurrent(waiting, primary)
	c.checkSame(primary, waiting)
	entries, err := os.ReadDir(waiting.DataFolder())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got, want := strings.Join(names, " "), ".lock db engine live.cnf"; got != want || err != nil {
		t.Errorf("on its volume are %s, want %s (%v)", got, want, err)
	}
}

func rotateMySQL(t *testing.T) {
	c := newMySQLCluster(t, 3)
	primary := c.members[0]
	passwords := oddPasswords(t)
	for _, pair := range passwords[:2] {
		for i := range c.members {
			member := &c.members[i]
			file := filepath.Join(filepath.Dir(member.DataFolder()), "secrets", "admin", plan.PasswordKey)
			if err := os.WriteFile(file, []byte(pair[1]), 0o440); err != nil {
				t.Fatal(err)
			}
			member.member.AdminPassword = pair[1]
			c.kill(*member)
		}
		primary = c.members[0]
		c.isCurrent(c.members[1], primary)
		c.isCurrent(c.members[2], primary)
	}
	execute(t, primary.app(t), "INSERT INTO app.t VALUES (7, '')")
	c.checkSame(primary, c.members[1], c.members[2])
	// A replica whose source has another password says so, and the operator's word
	// is enough.
	execute(t, c.admin(primary), "ALTER USER replicator@'%' IDENTIFIED BY 'other'")
	c.members[1].Kill()
	c.members[1].Restart()
	c.serves(c.members[1])
	c.awaitState(c.members[1], "is refused", func(state plan.EngineState) bool {
		return state.Replication.Failure == "its source refuses its password" && !state.Replication.IsReceiving
	})
}

func hinderMySQL(t *testing.T) {
	c := newMySQLCluster(t, 2)
	primary, replica := c.members[0], c.members[1]
	c.isCurrent(replica, primary)
	t.Run("its source is gone", func(t *testing.T) {
		primary.Kill()
		c.awaitState(replica, "says so", func(state plan.EngineState) bool {
			return state.Replication == plan.Replication{Source: primary.Host(), Failure: "its source can't be reached"} && state.Progress.Lag < 0
		})
		primary.Restart()
		c.serves(primary)
		c.isCurrent(replica, primary)
	})
	t.Run("its source says nothing", func(t *testing.T) {
		primary.Freeze()
		c.awaitState(replica, "isn't current", func(state plan.EngineState) bool { return !state.Replication.IsCurrent })
		primary.Thaw()
		c.isCurrent(replica, primary)
	})
	t.Run("it can be fenced while its source is out of reach", func(t *testing.T) {
		primary.Isolate(replica.Running)
		c.fence(replica)
		c.follow(replica, primary, false)
		c.fence(replica)
		primary.Rejoin()
		c.follow(replica, primary, false)
		c.isCurrent(replica, primary)
	})
	t.Run("its data aren't its source's", func(t *testing.T) {
		admin := c.admin(replica)
		execute(t, admin, "SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = OFF", "INSERT INTO app.t VALUES (50, '')", "SET GLOBAL super_read_only = ON")
		execute(t, primary.app(t), "INSERT INTO app.t VALUES (50, '')")
		state := c.awaitState(replica, "says so", func(state plan.EngineState) bool { return state.Replication.IsApart })
		if state.Replication.Failure != "what it has received doesn't fit its data (error 1062)" {
			t.Errorf("it says %+v", state)
		}
		// What it has received stays, and its position with it.
		c.fence(replica)
		if c.kill(replica); c.order(replica, primary) != plan.OrderSame {
			t.Errorf("fenced, it is at %q, and the primary at %q", c.state(replica).Progress.Position, c.state(primary).Progress.Position)
		}
	})
	t.Run("its source no longer has what it lacks", func(t *testing.T) {
		c.tell(plan.TopologyCloneVariable, replica.Name()+":again")
		c.kill(replica)
		c.isCurrent(replica, primary)
		c.fence(replica)
		execute(t, primary.app(t), "INSERT INTO app.t VALUES (60, '')")
		execute(t, c.admin(primary), "FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
		c.follow(replica, primary, false)
		c.awaitState(replica, "says so", func(state plan.EngineState) bool {
			return state.Replication.IsApart && state.Replication.Failure == "its source no longer has what it lacks"
		})
	})
}

// loadMySQL has an application write all the time, and what is then said of a replica.
func loadMySQL(t *testing.T) {
	c := newMySQLCluster(t, 2)
	primary, replica := c.members[0], c.members[1]
	first := c.isCurrent(replica, primary)
	stop, done := make(chan struct{}), make(chan error, 1)
	client := primary.app(t)
	go func() {
		for i := 1000; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := client.ExecContext(t.Context(), "INSERT INTO app.t VALUES (?, REPEAT('x', 1000))", i); err != nil {
				done <- err
				return
			}
		}
	}()
	connections := map[string]*Connection{"the primary": c.operator(primary), "the replica": c.operator(replica)}
	firsts := map[string]plan.EngineState{"the primary": c.state(primary), "the replica": first}
	for began := time.Now(); time.Since(began) < 8*time.Second; {
		for name, connection := range connections {
			state, err := connection.State(t.Context())
			if err == nil && plan.IsNews(firsts[name], state) {
				t.Fatalf("%s says %+v, and first %+v", name, state, firsts[name])
			}
		}
	}
	// What was being written when it was killed is received again.
	for range 4 {
		c.kill(replica)
		c.isCurrent(replica, primary)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.checkSame(primary, replica)
	for name, connection := range connections {
		whole := connection.state
		t.Logf("a call to %s takes %s, and without replication %s", name,
			c.timed(connection, whole), c.timed(connection, strings.TrimSuffix(whole, "; "+mysqlLook+"; SHOW REPLICAS")))
	}
}

// timed is how long a query takes, with all its answers.
func (c *mysqlCluster) timed(connection *Connection, query string) time.Duration {
	c.Helper()
	const calls = 300
	began := time.Now()
	for range calls {
		rows, err := connection.db.QueryContext(c.Context(), query, connection.target.AppUsername)
		if err != nil {
			c.Fatal(err)
		}
		for rows.Next() || rows.NextResultSet() {
			continue
		}
		if err := rows.Close(); err != nil {
			c.Fatal(err)
		}
	}
	return (time.Since(began) / calls).Round(time.Microsecond)
}
