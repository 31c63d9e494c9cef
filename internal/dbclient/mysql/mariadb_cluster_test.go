//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/plan"
)

// cluster is a MariaDB database of several members.
type cluster struct {
	t       *testing.T
	network *enginetest.Network
	product product
	members []running
	env     map[string]string
}

// newCluster starts the first member and makes it the primary, and lets the others
// copy its data, one after the other.
func newCluster(t *testing.T, image string, count int) *cluster {
	t.Helper()
	c := &cluster{t: t, network: enginetest.NewNetwork(t, "orders"), product: mariaDBProduct()}
	c.product.image = image
	c.env = map[string]string{plan.TopologyStateVariable: "new", plan.MembersDomainVariable: "orders-members.test.svc"}
	first := c.add(c.product)
	c.serves(first)
	first.promote(t)
	execute(t, first.app(t), "CREATE TABLE app.t (i BIGINT PRIMARY KEY, s TEXT)", "INSERT INTO app.t VALUES (1, 'é')")
	c.env[plan.TopologyStateVariable], c.env[plan.TopologyPrimaryVariable] = "initialized", first.Name()
	first.SetEnv(c.env)
	for len(c.members) < count {
		c.serves(c.add(c.product))
	}
	return c
}

// add starts one more member.
func (c *cluster) add(p product) running {
	c.t.Helper()
	made := p.member("")
	made.Env = c.env
	r := running{c.network.Start(len(c.members), made), p, made}
	c.members = append(c.members, r)
	return r
}

// serves waits until a member does.
func (c *cluster) serves(r running) {
	c.t.Helper()
	r.WaitFor(c.product.engine.Probe()...)
}

// tell gives all members another environment, from their next start on.
func (c *cluster) tell(name, value string) {
	c.env[name] = value
	for _, member := range c.members {
		member.SetEnv(c.env)
	}
}

// again starts a member again that has ended, and waits until it serves.
func (c *cluster) again(r running) {
	c.t.Helper()
	r.Restart()
	c.serves(r)
}

func (c *cluster) operator(r running) *Connection {
	c.t.Helper()
	return r.operator(c.t, r.member.AdminPassword)
}

// admin is a client with the operator's account.
func (c *cluster) admin(r running) *sql.DB {
	c.t.Helper()
	return r.client(c.t, c.product.engine.AdminUsername(), r.member.AdminPassword)
}

// state asks until the member answers; a call may take longer than its limit while
// the machine is busy.
func (c *cluster) state(r running) (state plan.EngineState) {
	c.t.Helper()
	connection := c.operator(r)
	await(c.t, r.Name()+" answers", func() (isSo bool) {
		var err error
		state, err = connection.State(c.t.Context())
		return err == nil
	})
	return state
}

// do carries out a verb until it succeeds, as the operator does.
func (c *cluster) do(what string, r running, verb func(context.Context, *Connection) error) {
	c.t.Helper()
	connection := c.operator(r)
	var err error
	defer func() {
		if c.t.Failed() {
			c.t.Logf("%s: the last error of %s was: %v", r.Name(), what, err)
		}
	}()
	await(c.t, r.Name()+": "+what, func() bool {
		err = verb(c.t.Context(), connection)
		return err == nil
	})
}

func (c *cluster) follow(r, source running, acknowledges bool) {
	c.t.Helper()
	c.do("follow", r, func(ctx context.Context, connection *Connection) error {
		return connection.Follow(ctx, plan.Source{Member: source.Name(), Host: source.Host(), Port: mariadb.Port, Acknowledges: acknowledges})
	})
}

func (c *cluster) fence(r running) {
	c.t.Helper()
	c.do("fence", r, func(ctx context.Context, connection *Connection) error { return connection.Fence(ctx) })
}

func (c *cluster) demote(r running) {
	c.t.Helper()
	c.do("demote", r, func(ctx context.Context, connection *Connection) error { return connection.Demote(ctx) })
}

func (c *cluster) promote(r running, count int) {
	c.t.Helper()
	c.do("promote", r, func(ctx context.Context, connection *Connection) error {
		return connection.Promote(ctx, plan.Acknowledgement{Count: count})
	})
}

// require has the primary wait for one acknowledgement.
func (c *cluster) require(r running) {
	c.t.Helper()
	c.do("require", r, func(ctx context.Context, connection *Connection) error {
		return connection.Require(ctx, plan.Acknowledgement{Count: 1})
	})
}

// awaitState waits until what a member says of itself is so.
func (c *cluster) awaitState(r running, what string, isSo func(plan.EngineState) bool) {
	c.t.Helper()
	c.awaitStateBy(c.operator(r), r, what, isSo)
}

// awaitStateBy is awaitState over a connection that there is.
func (c *cluster) awaitStateBy(connection *Connection, r running, what string, isSo func(plan.EngineState) bool) {
	c.t.Helper()
	var state plan.EngineState
	var err error
	defer func() {
		if c.t.Failed() {
			c.t.Logf("%s says %+v (%v)", r.Name(), state, err)
		}
	}()
	await(c.t, r.Name()+": "+what, func() bool {
		state, err = connection.State(c.t.Context())
		return err == nil && isSo(state)
	})
}

// hasAll waits until a member follows another one and has all that it has.
func (c *cluster) hasAll(r, source running) {
	c.t.Helper()
	want := c.state(source)
	c.awaitState(r, "has all that "+source.Name()+" has", func(state plan.EngineState) bool {
		return state.Replication.Source == source.Host() && state.Replication.IsReceiving && state.Progress.IsDrained &&
			c.order(state, want).Has()
	})
}

func (c *cluster) order(a, b plan.EngineState) plan.Order {
	return mariadb.New().Compare(a.Progress.Position, b.Progress.Position)
}

// rows are what a member's table holds.
func (c *cluster) rows(r running) string {
	c.t.Helper()
	return answer(c.t, c.admin(r), "SELECT i FROM app.t ORDER BY i")
}

func (c *cluster) insert(r running, values ...int) {
	c.t.Helper()
	app := r.app(c.t)
	for _, value := range values {
		execute(c.t, app, fmt.Sprintf("INSERT INTO app.t VALUES (%d, 'x')", value))
	}
}

// insertion is a write that is underway.
type insertion struct {
	err  error
	done chan struct{}
}

// begin begins to write, which may wait for ever.
func (c *cluster) begin(r running, value int) *insertion {
	c.t.Helper()
	app, ctx := r.app(c.t), c.t.Context()
	i := &insertion{done: make(chan struct{})}
	go func() {
		defer close(i.done)
		_, i.err = app.ExecContext(ctx, fmt.Sprintf("INSERT INTO app.t VALUES (%d, 'x')", value))
	}()
	return i
}

func (i *insertion) isDone() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// waits waits until one waits for acknowledgement.
func (c *cluster) waits(r running, i *insertion) {
	c.t.Helper()
	admin := c.admin(r)
	await(c.t, "a commit waits", func() bool {
		return strings.Contains(answer(c.t, admin, "SELECT STATE FROM information_schema.PROCESSLIST"), "Waiting for semi-sync ACK")
	})
	if i.isDone() {
		c.t.Fatalf("it is done: %v", i.err)
	}
}

// withAdminPassword writes another password where a member's start finds it.
func (c *cluster) withAdminPassword(r running, password string) running {
	c.t.Helper()
	file := filepath.Join(filepath.Dir(r.DataFolder()), "secrets", "admin", plan.PasswordKey)
	if err := os.WriteFile(file, []byte(password), 0o440); err != nil {
		c.t.Fatal(err)
	}
	r.member.AdminPassword = password
	for i := range c.members {
		if c.members[i].Name() == r.Name() {
			c.members[i] = r
		}
	}
	return r
}

// measured logs how long something took.
func measured(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	t.Logf("%s: %s", what, time.Since(began).Round(10*time.Millisecond))
}
