//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
)

const (
	stem   = "orders"
	domain = stem + "-members." + enginetest.Namespace + ".svc"
)

// database is one whose members share a network.
type database struct {
	server
	t       *testing.T
	network *enginetest.Network
	members []*enginetest.Running
}

// name is that of a member's pod.
func name(ordinal int) string { return fmt.Sprintf("%s-%d", stem, ordinal) }

// topology is what the containers are told of a database whose primary is known.
func topology(primary int, others ...string) map[string]string {
	variables := map[string]string{
		plan.TopologyStateVariable: string(plan.TopologyInitialized), plan.TopologyPrimaryVariable: name(primary), plan.MembersDomainVariable: domain,
	}
	for i := 0; i+1 < len(others); i += 2 {
		variables[others[i]] = others[i+1]
	}
	return variables
}

// newDatabase starts a primary, and so many replicas of it, and waits until they
// have its data.
func (s server) newDatabase(t *testing.T, replicas int) *database {
	t.Helper()
	d := &database{server: s, t: t, network: enginetest.NewNetwork(t, stem)}
	first := s.member("", plan.TopologyNew)
	first.Env[plan.MembersDomainVariable] = domain
	d.members = append(d.members, d.network.Start(0, first))
	d.members[0].WaitFor(s.Probe()...)
	d.promote(0, plan.Acknowledgement{})
	d.members[0].SetEnv(topology(0))
	d.write(0, "first", "1")
	for ordinal := 1; ordinal <= replicas; ordinal++ {
		d.join(ordinal, topology(0))
	}
	for ordinal := 1; ordinal <= replicas; ordinal++ {
		d.awaitCurrent(ordinal, 0)
	}
	return d
}

// join starts a new member on an empty volume.
func (d *database) join(ordinal int, env map[string]string) *enginetest.Running {
	d.t.Helper()
	member := d.member("", "")
	member.Env = env
	running := d.network.Start(ordinal, member)
	d.members = append(d.members, running)
	return running
}

// operator connects to a member as the operator does.
func (d *database) operator(ordinal int) *Connection {
	d.t.Helper()
	return d.operatorWith(ordinal, adminPassword)
}

func (d *database) operatorWith(ordinal int, password string) *Connection {
	d.t.Helper()
	SilenceDriver()
	options := optionsFor(dbclient.Target{Address: d.members[ordinal].Host() + ":6379", Username: engine.AdminUsername, Password: password})
	options.Dialer = d.network.Dial
	connection := connectionTo(dbclient.Target{Password: password}, options)
	d.t.Cleanup(func() { _ = connection.Close() }) // the member may be gone
	return connection
}

// client connects to a member as an application would.
func (d *database) client(ordinal int) *goredis.Client {
	d.t.Helper()
	return d.clientAs(ordinal, engine.Username, appPassword)
}

func (d *database) clientAs(ordinal int, username, password string) *goredis.Client {
	d.t.Helper()
	client := goredis.NewClient(&goredis.Options{
		Addr: d.members[ordinal].Host() + ":6379", Dialer: d.network.Dial, Username: username, Password: password, DisableIdentity: true, MaxRetries: -1,
	})
	d.t.Cleanup(func() { _ = client.Close() }) // the member may be gone
	return client
}

// write writes to a member, which has to take it.
func (d *database) write(ordinal int, key, value string) {
	d.t.Helper()
	if err := d.client(ordinal).Set(d.t.Context(), key, value, 0).Err(); err != nil {
		d.t.Fatalf("write %s to %s: %v", key, name(ordinal), err)
	}
}

// must fails the test if a verb does.
func (d *database) must(what string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
}

func (d *database) promote(ordinal int, required plan.Acknowledgement) {
	d.t.Helper()
	d.must("promote "+name(ordinal), d.operator(ordinal).Promote(d.t.Context(), required))
}

// require has the first member need replicas, and waits until it has heard of
// them.
func (d *database) require(required plan.Acknowledgement) {
	d.t.Helper()
	d.must("require replicas", d.operator(0).Require(d.t.Context(), required))
	client := d.client(0)
	eventually(d.t, "it has replicas", func(ctx context.Context) error { return client.Set(ctx, "required", "1", 0).Err() })
}

func (d *database) fence(ordinal int) {
	d.t.Helper()
	d.must("fence "+name(ordinal), d.operator(ordinal).Fence(d.t.Context()))
}

func (d *database) follow(ordinal, source int) {
	d.t.Helper()
	d.must("have "+name(ordinal)+" follow", d.operator(ordinal).Follow(d.t.Context(), plan.Source{
		Member: name(source), Host: d.members[source].Host(), Port: engine.Port, Acknowledges: true,
	}))
}

// eventually asks again and again until there is no error.
func eventually(t *testing.T, sentence string, ask func(context.Context) error) {
	t.Helper()
	eventuallyWithin(t, patience, sentence, ask)
}

func eventuallyWithin(t *testing.T, limit time.Duration, sentence string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	const pause = 20 * time.Millisecond
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", sentence, limit, err)
		}
	}
}

// await waits until a member's state is as it should be.
func (d *database) await(ordinal int, sentence string, isSo func(plan.EngineState) bool) plan.EngineState {
	d.t.Helper()
	operator := d.operator(ordinal)
	var found plan.EngineState
	eventually(d.t, name(ordinal)+" "+sentence, func(ctx context.Context) error {
		state, err := operator.State(ctx)
		if err == nil && !isSo(state) {
			err = fmt.Errorf("it says %+v", state)
		}
		found = state
		return err
	})
	return found
}

// awaitCurrent waits until a member follows another, and has what that one has.
func (d *database) awaitCurrent(ordinal, source int) {
	d.t.Helper()
	d.await(ordinal, "is current", func(state plan.EngineState) bool {
		return state.Replication.IsCurrent && state.Replication.Source == d.members[source].Host()
	})
	of := d.operator(source)
	eventually(d.t, name(ordinal)+" has all that "+name(source)+" has", func(ctx context.Context) error {
		ours, err := d.operator(ordinal).State(ctx)
		if err != nil {
			return err
		}
		theirs, err := of.State(ctx)
		if order := d.Compare(ours.Progress.Position, theirs.Progress.Position); err == nil && order != plan.OrderSame {
			err = fmt.Errorf("%s to %s is %d", ours.Progress.Position, theirs.Progress.Position, order)
		}
		return err
	})
}

// state asks a member, which has to answer.
func (d *database) state(ordinal int) plan.EngineState {
	d.t.Helper()
	state, err := d.operator(ordinal).State(d.t.Context())
	d.must("ask "+name(ordinal), err)
	return state
}

// checkOrder compares the positions of two members.
func (d *database) checkOrder(ours, theirs int, want plan.Order) {
	d.t.Helper()
	a, b := d.state(ours).Progress.Position, d.state(theirs).Progress.Position
	if got := d.Compare(a, b); got != want {
		d.t.Errorf("%s, at %s, is to %s, at %s, %d; want %d", name(ours), a, name(theirs), b, got, want)
	}
}

// rows are all keys of a member, with their values, as the operator reads them.
func (d *database) rows(ordinal int) map[string]string {
	d.t.Helper()
	client := d.clientAs(ordinal, engine.AdminUsername, adminPassword)
	rows := map[string]string{}
	keys := client.Scan(d.t.Context(), 0, "", 1000).Iterator()
	for keys.Next(d.t.Context()) {
		value, err := client.Get(d.t.Context(), keys.Val()).Result()
		d.must("read "+keys.Val(), err)
		rows[keys.Val()] = value
	}
	d.must("read the keys of "+name(ordinal), keys.Err())
	return rows
}

// checkSameRows checks that two members have the same data.
func (d *database) checkSameRows(ours, theirs int) {
	d.t.Helper()
	a, b := d.rows(ours), d.rows(theirs)
	if len(a) == 0 || !maps.Equal(a, b) {
		d.t.Errorf("%s has %d rows and %s has %d, and they aren't the same, or none", name(ours), len(a), name(theirs), len(b))
	}
}

// killAndRestart ends a member's server by SIGKILL, and starts it again with what its
// container is told now.
func (d *database) killAndRestart(ordinal int, env map[string]string) {
	d.t.Helper()
	d.members[ordinal].Kill()
	d.members[ordinal].SetEnv(env)
	d.members[ordinal].Restart()
	d.members[ordinal].WaitFor(d.Probe()...)
}
