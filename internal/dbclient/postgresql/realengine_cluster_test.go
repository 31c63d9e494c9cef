//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	membersDomain = "orders-members.test.svc"
	// clusterPatience is how long several members may take for what a test waits for.
	clusterPatience = 90 * time.Second
)

// isForLater tells whether tests are to be short, and leaves this one out then: the
// failover alone goes all the way in less than a minute.
func isForLater(t *testing.T) bool {
	t.Helper()
	return testing.Short()
}

// cluster is several members in a network, and the operator's connections.
type cluster struct {
	t        *testing.T
	version  string
	password string
	network  *enginetest.Network
	members  []*enginetest.Running
	asked    []*Connection
}

// topologyOf is the environment of members, as the topology has it.
func topologyOf(state plan.TopologyState, primary string, wishes ...string) map[string]string {
	env := map[string]string{plan.TopologyStateVariable: string(state), plan.MembersDomainVariable: membersDomain}
	if primary != "" {
		env[plan.TopologyPrimaryVariable] = primary
	}
	if len(wishes) > 0 {
		env[plan.TopologyCloneVariable] = strings.Join(wishes, " ")
	}
	return env
}

// newCluster makes a first member, promotes it, and has others copy it. The
// primary waits for none of them.
func newCluster(t *testing.T, version string, members int) *cluster {
	t.Helper()
	c := &cluster{t: t, version: version, password: adminPassword, network: enginetest.NewNetwork(t, "orders")}
	c.add(topologyOf(plan.TopologyNew, ""))
	c.await(0, "served", func(plan.EngineState) bool { return true })
	c.do("promote", func(ctx context.Context) error { return c.asked[0].Promote(ctx, plan.Acknowledgement{}) })
	c.await(0, "is primary", isPrimary)
	for range members - 1 {
		c.add(topologyOf(plan.TopologyInitialized, "orders-0"))
	}
	for i := 1; i < members; i++ {
		c.await(i, "is current", isCurrent)
	}
	return c
}

// add starts one more member, with an empty volume.
func (c *cluster) add(env map[string]string) int {
	c.t.Helper()
	ordinal := len(c.members)
	member := newMember(c.t, c.version)
	member.Env, member.Stop, member.AdminPassword = env, engine.New().Stop(), c.password
	member.Data = filepath.Join(c.t.TempDir(), "data")
	running := c.network.Start(ordinal, member)
	c.members = append(c.members, running)
	c.asked = append(c.asked, dial(c.t, running, c.password))
	return ordinal
}

// name is that of a member's pod.
func name(ordinal int) string { return fmt.Sprintf("orders-%d", ordinal) }

// sourceOf is a member as others' source.
func sourceOf(ordinal int, acknowledges bool) plan.Source {
	return plan.Source{Member: name(ordinal), Host: name(ordinal) + "." + membersDomain, Port: engine.Port, Acknowledges: acknowledges}
}

func isPrimary(s plan.EngineState) bool { return s.Role == v1alpha1.MemberRolePrimary }
func isCurrent(s plan.EngineState) bool { return s.Replication.IsCurrent }
func isDrained(s plan.EngineState) bool { return s.Progress.IsDrained && s.Progress.Position != "" }

// isFenced tells whether a member is a replica of nobody, and has executed all.
func isFenced(s plan.EngineState) bool {
	return s.Role == v1alpha1.MemberRoleReplica && s.Replication.Source == "" && isDrained(s)
}

// await asks a member until something is so of it.
func (c *cluster) await(ordinal int, what string, isSo func(plan.EngineState) bool) plan.EngineState {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clusterPatience)
	defer cancel()
	for {
		state, err := c.asked[ordinal].State(ctx)
		if err == nil && isSo(state) {
			return state
		}
		if ctx.Err() != nil {
			c.t.Fatalf("%s: it isn't so that it %s: %+v (%v)", name(ordinal), what, state, err)
		}
		pause(ctx)
	}
}

// pause is between two looks, so that they don't take the members' time.
func pause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

// do calls a verb until it succeeds, as the operator does from pass to pass.
func (c *cluster) do(what string, verb func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clusterPatience)
	defer cancel()
	for {
		err := verb(ctx)
		if err == nil {
			return
		}
		if refused := (*dbclient.Refusal)(nil); ctx.Err() != nil || errors.As(err, &refused) {
			c.t.Fatalf("%s: %v", what, err)
		}
		pause(ctx)
	}
}

func (c *cluster) follow(ordinal, source int, acknowledges bool) {
	c.t.Helper()
	c.do("follow", func(ctx context.Context) error { return c.asked[ordinal].Follow(ctx, sourceOf(source, acknowledges)) })
}

func (c *cluster) fence(ordinal int) {
	c.t.Helper()
	c.do("fence", c.asked[ordinal].Fence)
}

func (c *cluster) promote(ordinal int, required plan.Acknowledgement) {
	c.t.Helper()
	c.do("promote", func(ctx context.Context) error { return c.asked[ordinal].Promote(ctx, required) })
	c.await(ordinal, "is primary", isPrimary)
}

func (c *cluster) require(ordinal int, required plan.Acknowledgement) {
	c.t.Helper()
	c.do("require", func(ctx context.Context) error { return c.asked[ordinal].Require(ctx, required) })
}

// oneOf waits for one of the members with those numbers.
func oneOf(ordinals ...int) plan.Acknowledgement {
	required := plan.Acknowledgement{Count: 1}
	for _, ordinal := range ordinals {
		required.Names = append(required.Names, name(ordinal))
	}
	return required
}

// synchronise has both other members acknowledge, and member 0 wait for one.
func (c *cluster) synchronise() {
	c.t.Helper()
	for i := 1; i < len(c.members); i++ {
		c.follow(i, 0, true)
		c.await(i, "acknowledges", func(s plan.EngineState) bool { return s.Replication.Acknowledges && s.Replication.IsCurrent })
	}
	c.await(0, "has its followers", func(s plan.EngineState) bool { return s.Replication.Followers == "orders-1,orders-2" })
	c.require(0, oneOf(1, 2))
}

// app is a client of one member.
func (c *cluster) app(ordinal int) session {
	c.t.Helper()
	return connectApp(c.t, c.members[ordinal])
}

// awaitRows asks one member until a query gives what it should.
func (c *cluster) awaitRows(ordinal int, query, want string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clusterPatience)
	defer cancel()
	client := c.app(ordinal)
	for {
		got, err := client.query(query)
		if err == nil && got == want {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("%s: %s gives %q (%v), want %q", name(ordinal), query, got, err, want)
		}
		pause(ctx)
	}
}

// compare compares what two members say.
func compare(one, other plan.EngineState) plan.Order {
	return engine.New().Compare(one.Progress.Position, other.Progress.Position)
}

// commit is a statement that a client waits for.
type commit struct {
	done chan error
}

// begin runs a statement of a client, which may wait.
func begin(client session, statement string) commit {
	started := commit{make(chan error, 1)}
	go func() {
		_, err := client.query(statement)
		started.done <- err
	}()
	return started
}

// waits tells whether a primary has a client that waits for replicas, and waits
// until it has one.
func (c *cluster) awaitWaiter(ordinal int) {
	c.t.Helper()
	superuser, err := connect(c.t, c.members[ordinal], engine.AdminUsername, c.password, database)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), clusterPatience)
	defer cancel()
	for superuser.mustQuery("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
		if ctx.Err() != nil {
			c.t.Fatal("no commit waits")
		}
		pause(ctx)
	}
}

// isDone tells whether the commit returned, and fails the test where it failed.
func (c commit) isDone(t *testing.T) bool {
	t.Helper()
	select {
	case err := <-c.done:
		if err != nil {
			t.Fatalf("a commit: %v", err)
		}
		return true
	default:
		return false
	}
}

// await waits until the commit returned well.
func (c commit) await(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	select {
	case err := <-c.done:
		if err != nil {
			t.Fatalf("a commit: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("a commit doesn't return")
	}
}
