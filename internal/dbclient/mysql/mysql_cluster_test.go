//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/engine/enginetest"
	mysqlengine "coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// mysqlCluster is a MySQL database of several members in a network.
type mysqlCluster struct {
	*testing.T
	network *enginetest.Network
	product product
	members []running
	env     map[string]string
	// asked are the connections that are used again, by the member and its password:
	// what is waited for is asked for many times.
	asked   map[string]*Connection
	clients map[string]*sql.DB
}

// newMySQLCluster starts the first member and makes it the primary, and has the
// others copy its data, all at once.
func newMySQLCluster(t *testing.T, count int) *mysqlCluster {
	t.Helper()
	c := &mysqlCluster{T: t, network: enginetest.NewNetwork(t, "orders"), product: mysqlProduct(), asked: map[string]*Connection{}, clients: map[string]*sql.DB{}}
	c.env = map[string]string{plan.TopologyStateVariable: "new", plan.MembersDomainVariable: "orders-members." + enginetest.Namespace + ".svc"}
	first := c.add(c.product.member(""))
	c.serves(first)
	c.promote(first, 0)
	execute(t, first.app(t), "CREATE TABLE app.t (i BIGINT PRIMARY KEY, s TEXT)", "INSERT INTO app.t VALUES (1, 'é')")
	c.tell(plan.TopologyStateVariable, "initialized")
	c.tell(plan.TopologyPrimaryVariable, first.Name())
	began := time.Now()
	for len(c.members) < count {
		c.add(c.product.member(""))
	}
	for _, member := range c.members {
		c.serves(member)
	}
	if count == 1 {
		return c
	}
	t.Logf("from %d empty volumes to the first answers: %s", count-1, time.Since(began).Round(10*time.Millisecond))
	return c
}

// add starts one more member.
func (c *mysqlCluster) add(made enginetest.Member) running {
	c.Helper()
	made.Env = maps.Clone(c.env)
	r := running{c.network.Start(len(c.members), made), c.product, made}
	c.members = append(c.members, r)
	return r
}

func (c *mysqlCluster) serves(r running) {
	c.Helper()
	r.WaitFor(c.product.engine.Probe()...)
}

// tell gives all members another environment, from their next start on.
func (c *mysqlCluster) tell(name, value string) {
	c.env[name] = value
	for _, member := range c.members {
		member.SetEnv(c.env)
	}
}

// kill ends a member by SIGKILL, and starts it again in place.
func (c *mysqlCluster) kill(r running) {
	c.Helper()
	r.Kill()
	r.Restart()
	c.serves(r)
}

func (c *mysqlCluster) operator(r running) *Connection {
	c.Helper()
	key := r.Name() + " " + r.member.AdminPassword
	if c.asked[key] == nil {
		c.asked[key] = r.operator(c.T, r.member.AdminPassword)
	}
	return c.asked[key]
}

func (c *mysqlCluster) admin(r running) *sql.DB {
	c.Helper()
	return r.client(c.T, c.product.engine.AdminUsername(), r.member.AdminPassword)
}

// do carries out a verb until it succeeds, as the operator does.
func (c *mysqlCluster) do(what string, r running, verb func(context.Context, *Connection) error) {
	c.Helper()
	connection := c.operator(r)
	var err error
	defer func() {
		if c.Failed() {
			c.Logf("%s of %s: %v", what, r.Name(), err)
		}
	}()
	await(c.T, r.Name()+": "+what, func() bool {
		err = verb(c.Context(), connection)
		return err == nil
	})
}

func (c *mysqlCluster) follow(r, source running, acknowledges bool) {
	c.Helper()
	c.do("follow", r, func(ctx context.Context, connection *Connection) error {
		return connection.Follow(ctx, plan.Source{Member: source.Name(), Host: source.Host(), Port: mysqlengine.Port, Acknowledges: acknowledges})
	})
}

func (c *mysqlCluster) fence(r running) {
	c.Helper()
	c.do("fence", r, func(ctx context.Context, connection *Connection) error { return connection.Fence(ctx) })
}

func (c *mysqlCluster) promote(r running, count int) {
	c.Helper()
	c.do("promote", r, func(ctx context.Context, connection *Connection) error {
		return connection.Promote(ctx, plan.Acknowledgement{Count: count})
	})
}

func (c *mysqlCluster) require(r running, count int) {
	c.Helper()
	c.do("require", r, func(ctx context.Context, connection *Connection) error {
		return connection.Require(ctx, plan.Acknowledgement{Count: count})
	})
}

// awaitState asks until the member says so.
func (c *mysqlCluster) awaitState(r running, what string, isSo func(plan.EngineState) bool) (state plan.EngineState) {
	c.Helper()
	connection := c.operator(r)
	var err error
	defer func() {
		if c.Failed() {
			c.Logf("%s said last: %+v (%v)", r.Name(), state, err)
		}
	}()
	await(c.T, r.Name()+": "+what, func() bool {
		state, err = connection.State(c.Context())
		return err == nil && isSo(state)
	})
	return state
}

func (c *mysqlCluster) state(r running) plan.EngineState {
	c.Helper()
	return c.awaitState(r, "answers", func(plan.EngineState) bool { return true })
}

// isCurrent waits until a replica has nothing to catch up with.
func (c *mysqlCluster) isCurrent(r, source running) plan.EngineState {
	c.Helper()
	return c.awaitState(r, "is current", func(state plan.EngineState) bool {
		return state.Replication.IsCurrent && state.Replication.Source == source.Host()
	})
}

// checkSame waits until members have the same rows, all of which were executed.
func (c *mysqlCluster) checkSame(one running, others ...running) {
	c.Helper()
	for _, other := range others {
		await(c.T, other.Name()+" has what "+one.Name()+" has", func() bool {
			return mysqlengine.New().Compare(c.state(one).Progress.Position, c.state(other).Progress.Position) == plan.OrderSame && c.state(other).Progress.IsDrained
		})
		if got, want := c.rows(other), c.rows(one); got != want {
			c.Errorf("%s has the rows %s, and %s %s", other.Name(), got, one.Name(), want)
		}
	}
}

func (c *mysqlCluster) rows(r running) string {
	c.Helper()
	if c.clients[r.Name()] == nil {
		c.clients[r.Name()] = r.app(c.T)
	}
	client := c.clients[r.Name()]
	// The server may have been started again since.
	await(c.T, r.Name()+" answers", func() bool { return client.PingContext(c.Context()) == nil })
	return answer(c.T, client, "SELECT i FROM app.t ORDER BY i")
}

func (c *mysqlCluster) order(a, b running) plan.Order {
	c.Helper()
	return mysqlengine.New().Compare(c.state(a).Progress.Position, c.state(b).Progress.Position)
}

// mysqlInsertion is a write that may wait.
type mysqlInsertion struct {
	done chan struct{}
	err  error
}

func (i *mysqlInsertion) isDone() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// begin begins to insert a row.
func (c *mysqlCluster) begin(r running, value int) *mysqlInsertion {
	c.Helper()
	client := r.app(c.T)
	if err := client.PingContext(c.Context()); err != nil {
		c.Fatal(err)
	}
	i := &mysqlInsertion{done: make(chan struct{})}
	go func() {
		_, i.err = client.ExecContext(c.Context(), fmt.Sprintf("INSERT INTO app.t VALUES (%d, '')", value))
		close(i.done)
	}()
	return i
}

// waits waits until one commit waits for acknowledgement.
func (c *mysqlCluster) waits(r running) {
	c.Helper()
	admin := c.admin(r)
	await(c.T, "a commit waits", func() bool {
		return answer(c.T, admin, "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_wait_sessions'") == "1"
	})
}

func TestMembersOfMySQL(t *testing.T) {
	scenarios := []struct {
		sentence string
		run      func(*testing.T)
	}{
		{"they copy, acknowledge, and hand over", handOverMySQL},
		{"a failover loses nothing that was acknowledged", failOverMySQL},
		{"a copy that is interrupted is made again", interruptCopiesOfMySQL},
		{"they go on with another password of the operator's", rotateMySQL},
		{"a replica says what keeps it from following", hinderMySQL},
		{"a replica stays current under load, and nothing wavers", loadMySQL},
	}
	if testing.Short() {
		scenarios = scenarios[:1]
	}
	for _, scenario := range scenarios {
		t.Run(scenario.sentence, scenario.run)
	}
}

// handOverMySQL leads members from the first copy to another primary.
func handOverMySQL(t *testing.T) {
	c := newMySQLCluster(t, 3)
	primary, one, two := c.members[0], c.members[1], c.members[2]
	c.isCurrent(one, primary)
	c.isCurrent(two, primary)
	execute(t, primary.app(t), "INSERT INTO app.t VALUES (2, '')")
	c.checkSame(primary, one, two)
	c.checkRoles(primary, one, two)
	c.checkWaiting(primary, one, two)
	c.checkHandover(primary, one, two)
	c.checkUnseen()
}

// checkUnseen looks for what replicas log in with, where others could see it.
func (c *mysqlCluster) checkUnseen() {
	c.Helper()
	for _, member := range c.members {
		places := map[string]string{"the output": member.Output()}
		for _, query := range append(c.product.told, "SELECT User_password FROM mysql.slave_master_info") {
			places[query] = answer(c.T, c.admin(member), query)
		}
		for place, text := range places {
			if strings.Contains(text, mysqlReplicatorPassword(member.member.AdminPassword)) {
				c.Errorf("the password is in %s of %s", place, member.Name())
			}
		}
	}
}

// checkRoles looks at what members say, and that a restart changes none of it.
func (c *mysqlCluster) checkRoles(primary running, replicas ...running) {
	c.Helper()
	want := plan.Replication{Required: "none", Followers: "orders-1,orders-2"}
	if got := c.state(primary); got.Role != v1alpha1.MemberRolePrimary || got.Replication != want {
		c.Errorf("the primary says %+v, want %+v", got, want)
	}
	want = plan.Replication{Source: primary.Host(), IsReceiving: true, IsCurrent: true}
	for _, replica := range replicas {
		if got := c.state(replica); got.Role != v1alpha1.MemberRoleReplica || got.Replication != want {
			c.Errorf("%s says %+v, want %+v", replica.Name(), got, want)
		}
		if _, err := replica.app(c.T).Exec("INSERT INTO app.t VALUES (99, '')"); !isError(err, readOnlyError) {
			c.Errorf("a write to %s gives %v", replica.Name(), err)
		}
		if !strings.Contains(answer(c.T, c.admin(replica), "SELECT CONCAT(@@server_id, ' ', @@report_host)"), replica.Name()) {
			c.Errorf("%s has another name", replica.Name())
		}
	}
	c.kill(replicas[0])
	c.isCurrent(replicas[0], primary)
}

// checkWaiting looks that a commit waits for acknowledgement, and for nothing else.
func (c *mysqlCluster) checkWaiting(primary, one, two running) {
	c.Helper()
	c.fence(one)
	c.fence(two)
	c.require(primary, 1)
	waiting := c.begin(primary, 10)
	c.waits(primary)
	// Nobody sees it, and the operator is answered.
	if got := c.rows(primary); strings.Contains(got, "10") {
		c.Errorf("what waits is seen: %s", got)
	}
	if got := c.state(primary).Replication.Required; got != "1 of " {
		c.Errorf("it requires %q", got)
	}
	began := time.Now()
	if err := c.operator(primary).Demote(c.Context()); err == nil || err.Error() != errCommitsWait.Error() {
		c.Errorf("to demote it gives %v", err)
	}
	c.Logf("to demote a primary that waits fails after %s", time.Since(began).Round(10*time.Millisecond))
	if state := c.state(primary); state.Role != v1alpha1.MemberRolePrimary || waiting.isDone() {
		c.Errorf("it says %+v; its commit is done: %t", state, waiting.isDone())
	}
	if err := primary.withPassword(c.T, "other").SetPassword(c.Context()); err != nil {
		c.Errorf("to set a password gives %v", err)
	}
	if err := primary.withPassword(c.T, appPassword).SetPassword(c.Context()); err != nil {
		c.Errorf("to set a password gives %v", err)
	}
	c.follow(one, primary, true)
	await(c.T, "the commit is done", waiting.isDone)
	if waiting.err != nil {
		c.Errorf("it ends with %v", waiting.err)
	}
	// One that has a transaction already is never sent it again.
	c.follow(one, primary, false)
	c.follow(two, primary, false)
	waiting = c.begin(primary, 11)
	c.waits(primary)
	await(c.T, "the others have it", func() bool {
		return c.order(one, primary) == plan.OrderAhead && c.order(two, primary) == plan.OrderAhead
	})
	c.follow(one, primary, true)
	c.follow(two, primary, true)
	c.awaitState(primary, "the commit is done", func(plan.EngineState) bool { return waiting.isDone() })
	if waiting.err != nil {
		c.Errorf("it ends with %v", waiting.err)
	}
	for _, replica := range []running{one, two} {
		c.awaitState(replica, "acknowledges", func(state plan.EngineState) bool { return state.Replication.Acknowledges })
	}
	c.checkSame(primary, one, two)
}

// checkHandover makes another member the primary, while somebody writes.
func (c *mysqlCluster) checkHandover(former, next, other running) {
	c.Helper()
	stop, written := make(chan struct{}), make(chan []int, 1)
	var gap time.Duration
	before, after := former.app(c.T), next.app(c.T)
	go func() {
		var done []int
		last := time.Now()
		for value := 1000; ; value++ {
			select {
			case <-stop:
				written <- done
				return
			default:
			}
			for _, client := range []*sql.DB{before, after} {
				if _, err := client.ExecContext(c.Context(), fmt.Sprintf("INSERT INTO app.t VALUES (%d, '')", value)); err == nil {
					done, gap, last = append(done, value), max(gap, time.Since(last)), time.Now()
					break
				}
			}
		}
	}()
	c.awaitState(next, "has some of it", func(state plan.EngineState) bool { return strings.Contains(c.rows(next), "1010") })
	began := time.Now()
	c.do("demote", former, func(ctx context.Context, connection *Connection) error { return connection.Demote(ctx) })
	await(c.T, next.Name()+" has all", func() bool { return c.order(next, former).Has() })
	c.promote(next, 1)
	c.Logf("handed over in %s", time.Since(began).Round(10*time.Millisecond))
	c.tell(plan.TopologyPrimaryVariable, next.Name())
	c.follow(other, next, true)
	c.follow(former, next, true)
	execute(c.T, after, "INSERT INTO app.t VALUES (500, '')")
	close(stop)
	c.checkWritten(next, written)
	c.Logf("nothing was written for %s", gap.Round(10*time.Millisecond))
	c.checkSame(next, former, other)
	// What was a primary is a replica like others: its starts set the accounts, and
	// start replication.
	c.kill(former)
	c.isCurrent(former, next)
	execute(c.T, c.admin(former), "STOP REPLICA")
	c.awaitState(former, "is idle", func(state plan.EngineState) bool { return state.Replication.IsIdle && !state.Replication.IsCurrent })
	c.follow(former, next, true)
	if state := c.isCurrent(former, next); state.Replication.IsIdle {
		c.Errorf("%s says %+v", former.Name(), state)
	}
}

// checkWritten waits for the writer, and looks that all that it was told is there.
func (c *mysqlCluster) checkWritten(r running, written chan []int) {
	c.Helper()
	var done []int
	await(c.T, "the writer ends", func() bool {
		select {
		case done = <-written:
			return true
		default:
			return false
		}
	})
	rows := " " + c.rows(r) + " "
	for _, value := range done {
		if !strings.Contains(rows, fmt.Sprintf(" %d ", value)) {
			c.Errorf("%d is lost", value)
		}
	}
	c.Logf("%d writes", len(done))
}
