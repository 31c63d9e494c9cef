//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	engine "coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestMembersFollowThePrimaryAndKeepTheirRolesOverRestarts(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 2)
		d.await(0, "has two followers", func(state plan.EngineState) bool { return state.Replication.Followers == "orders-1,orders-2" })
		if err := d.client(1).Set(t.Context(), "key", "x", 0).Err(); !goredis.HasErrorPrefix(err, "READONLY") {
			t.Errorf("a replica answers a write with %v", err)
		}
		steps := []struct {
			sentence string
			ordinal  int
		}{{"a replica is killed", 1}, {"the primary is killed", 0}, {"a replica is killed again", 2}}
		for i, step := range steps {
			d.killAndRestart(step.ordinal, topology(0))
			d.await(0, "is primary after "+step.sentence, func(state plan.EngineState) bool { return state.Role == v1alpha1.MemberRolePrimary })
			d.write(0, "key", strconv.Itoa(i))
			for replica := 1; replica <= 2; replica++ {
				d.awaitCurrent(replica, 0)
				d.checkSameRows(replica, 0)
			}
		}
		// With another address, and a while without any.
		d.members[0].Delete(patience)
		d.await(1, "is cut off", func(state plan.EngineState) bool { return !state.Replication.IsReceiving })
		d.members[0].Create()
		d.members[0].WaitFor(s.Probe()...)
		for replica := 1; replica <= 2; replica++ {
			d.awaitCurrent(replica, 0)
		}
	})
}

func TestAStateDoesntChangeUnderWrites(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		d.await(0, "has a follower", func(state plan.EngineState) bool { return state.Replication.Followers == "orders-1" })
		before := []plan.EngineState{d.state(0), d.state(1)}
		client := d.client(0)
		for i := range 500 {
			if err := client.Set(t.Context(), strconv.Itoa(i), strings.Repeat("x", 1000), 0).Err(); err != nil {
				t.Fatal(err)
			}
			if i%25 != 0 {
				continue
			}
			for ordinal := range 2 {
				if after := d.state(ordinal); plan.IsNews(before[ordinal], after) {
					t.Fatalf("%s said %+v, and then %+v", name(ordinal), before[ordinal], after)
				}
			}
		}
		d.awaitCurrent(1, 0)
	})
}

// TestAnAcknowledgedWriteOutlivesThePrimary is a failover by the verbs alone.
func TestAnAcknowledgedWriteOutlivesThePrimary(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 2)
		required := plan.Acknowledgement{Count: 1, Names: []string{"orders-1", "orders-2"}}
		d.require(required)
		session := d.client(0).Conn()
		t.Cleanup(func() { _ = session.Close() }) // the member will be gone
		// One replica stands still, so that the other has more.
		d.members[1].Freeze()
		d.must("write", session.Set(t.Context(), "acknowledged", "1", 0).Err())
		if count, err := session.Wait(t.Context(), 1, patience).Result(); err != nil || count != 1 {
			t.Fatalf("WAIT gives %d and %v", count, err)
		}
		// What nobody else gets: the application hears OK, and never heard of a replica.
		d.members[0].Isolate()
		d.must("write", session.Set(t.Context(), "unacknowledged", "1", 0).Err())
		last := d.state(0).Progress.Position
		d.members[0].Kill()
		d.members[1].Thaw()
		began := time.Now()
		d.fence(1)
		d.fence(2)
		// Not before: what the network had held back would arrive after all.
		d.members[0].Rejoin()
		for replica := 1; replica <= 2; replica++ {
			if state := d.state(replica); state.Replication != (plan.Replication{}) || state.Progress.Position == "" || !state.Progress.IsDrained {
				t.Errorf("fenced, %s says %+v", name(replica), state)
			}
		}
		// What had reached its socket it may have executed since.
		if order := d.Compare(d.state(1).Progress.Position, d.state(2).Progress.Position); order != plan.OrderBehind && order != plan.OrderSame {
			t.Errorf("the replica that stood still is %d to the other", order)
		}
		if order := s.Compare(last, d.state(2).Progress.Position); order != plan.OrderAhead {
			t.Errorf("the old primary is %d to the replica, want ahead", order)
		}
		d.promote(2, required)
		d.follow(1, 2)
		client := d.client(2)
		eventually(t, "it takes writes", func(ctx context.Context) error { return client.Set(ctx, "afterwards", "1", 0).Err() })
		t.Logf("%s from the first fence to the first write", time.Since(began))
		d.awaitCurrent(1, 2)
		if state := d.state(2); state.Role != v1alpha1.MemberRolePrimary || state.Replication.Required != "1 of " {
			t.Errorf("promoted, it says %+v", state)
		}
		if order := s.Compare(last, d.state(2).Progress.Position); order != plan.OrderApart {
			t.Errorf("the old primary is %d to the new one, want apart", order)
		}
		if rows := d.rows(2); rows["acknowledged"] != "1" || rows["unacknowledged"] != "" {
			t.Errorf("the new primary has %v", rows)
		}
		d.returnOfTheOldPrimary(2)
	})
}

// returnOfTheOldPrimary starts the member 0 again, which was the primary, and has
// it give up its data for those of the new one.
func (d *database) returnOfTheOldPrimary(primary int) {
	d.t.Helper()
	d.members[0].SetEnv(topology(primary))
	d.members[0].Restart()
	d.members[0].WaitFor(d.Probe()...)
	for range 2 {
		state := d.state(0)
		if state.Role != v1alpha1.MemberRoleReplica || state.Replication.Source != "" || state.Progress.Position != "" {
			d.t.Errorf("the old primary says %+v", state)
		}
		if err := d.client(0).Set(d.t.Context(), "x", "x", 0).Err(); !goredis.HasErrorPrefix(err, "READONLY") {
			d.t.Errorf("the old primary answers a write with %v", err)
		}
		// Nor does it become one by itself where the topology is gone.
		d.killAndRestart(0, nil)
	}
	d.checkOrder(0, primary, plan.OrderUnknown)
	wish := topology(primary, plan.TopologyCloneVariable, "orders-1:other orders-0:token")
	d.killAndRestart(0, wish)
	d.awaitCurrent(0, primary)
	d.checkSameRows(0, primary)
	if granted, err := os.ReadFile(filepath.Join(d.members[0].DataFolder(), "cloned")); err != nil || string(granted) != "token\n" {
		d.t.Errorf("the token is %q (%v)", granted, err)
	}
	// The same wish isn't granted twice.
	before, err := os.Stat(filepath.Join(d.members[0].DataFolder(), "db"))
	d.must("look at the data", err)
	d.killAndRestart(0, wish)
	after, err := os.Stat(filepath.Join(d.members[0].DataFolder(), "db"))
	d.must("look at the data", err)
	if !os.SameFile(before, after) {
		d.t.Error("it gave up its data a second time")
	}
	d.awaitCurrent(0, primary)
}

// TestAHandoverLosesNoRow moves the primary while an application writes.
func TestAHandoverLosesNoRow(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 2)
		stop, cancel := context.WithCancel(t.Context())
		defer cancel()
		written := make(chan writes)
		go func() { written <- d.writeUntil(stop, 0, 1) }()
		eventually(t, "the application writes", func(ctx context.Context) error {
			return d.client(0).Get(ctx, "row-100").Err()
		})
		admin := d.clientAs(0, engine.AdminUsername, adminPassword)
		settings := admin.ConfigGet(t.Context(), "*").Val()
		for range 2 { // a second time changes nothing
			d.must("demote", d.operator(0).Demote(t.Context()))
		}
		// Nothing else was changed for good.
		settings["replicaof"], settings["slaveof"] = "127.0.0.1 1", "127.0.0.1 1"
		for setting, after := range admin.ConfigGet(t.Context(), "*").Val() {
			if before := settings[setting]; before != after {
				t.Errorf("%s is %q, and should be %q", setting, after, before)
			}
		}
		if state := d.state(0); state.Role != v1alpha1.MemberRoleReplica || state.Replication.Source != "" {
			t.Errorf("demoted, it says %+v", state)
		}
		// What was on its way is executed within a moment.
		for replica := 1; replica <= 2; replica++ {
			d.checkOrder(replica, 0, plan.OrderSame)
		}
		d.promote(1, plan.Acknowledgement{})
		d.follow(0, 1)
		d.follow(2, 1)
		eventually(t, "the application goes on", func(ctx context.Context) error {
			return d.client(1).Get(ctx, "moved").Err()
		})
		cancel()
		of := <-written
		d.must("demote a member that follows", d.operator(0).Demote(t.Context()))
		t.Logf("%d rows, and a gap of %s", len(of.acknowledged), of.gap)
		for _, replica := range []int{0, 2} {
			d.awaitCurrent(replica, 1)
			d.checkSameRows(replica, 1)
		}
		if strings.Contains(d.members[0].Output(), "Full resync from") {
			t.Error("the former primary got a whole copy, though it had all")
		}
		rows := d.rows(1)
		for _, key := range of.acknowledged {
			if rows[key] == "" {
				t.Errorf("%s was acknowledged, and is gone", key)
			}
		}
		const bound = 5 * time.Second // 2 s, on an idle machine
		if of.gap > bound {
			t.Errorf("nothing could be written for %s", of.gap)
		}
		for ordinal := range 3 { // the roles lie with the data
			d.killAndRestart(ordinal, topology(1))
		}
		d.awaitCurrent(0, 1)
		d.awaitCurrent(2, 1)
	})
}

// writes are what an application wrote.
type writes struct {
	acknowledged []string
	// gap is the longest time between two writes that went well.
	gap time.Duration
}

// writeUntil writes rows to the first of the members, and to the next one when
// that refuses, until it is told to stop.
func (d *database) writeUntil(ctx context.Context, first, next int) (of writes) {
	client, hasMoved := d.client(first), false
	last := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("row-%d", i)
		err := client.Set(ctx, key, "1", 0).Err()
		if goredis.HasErrorPrefix(err, "READONLY") && !hasMoved {
			client, hasMoved = d.client(next), true
			continue
		}
		if err == nil && hasMoved {
			client.Set(ctx, "moved", "1", 0) // asked for until it is there
		}
		if err == nil {
			of.acknowledged = append(of.acknowledged, key)
			of.gap = max(of.gap, time.Since(last))
			last = time.Now()
		}
	}
	return of
}

func TestADemotionWaitsForAReplicaThatStandsStillAndGoesOnAsBefore(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		d.members[1].Freeze()
		d.write(0, "key", "1")
		if err := d.operator(0).Demote(t.Context()); err == nil || !strings.Contains(err.Error(), "doesn't confirm") {
			t.Errorf("got %v", err)
		}
		if state := d.state(0); state.Role != v1alpha1.MemberRolePrimary {
			t.Errorf("it says %+v", state)
		}
		d.write(0, "key", "2")
		d.members[1].Thaw()
		eventually(t, "it is demoted", d.operator(0).Demote)
		d.checkOrder(1, 0, plan.OrderSame)
		d.promote(1, plan.Acknowledgement{})
		if rows := d.rows(1); rows["key"] != "2" {
			t.Errorf("the replica has %v", rows)
		}
	})
}

func TestAFenceHoldsWhateverHappens(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		for range 2 { // a second time changes nothing
			d.fence(1)
		}
		d.await(0, "has no follower", func(state plan.EngineState) bool { return state.Replication.Followers == "" })
		d.write(0, "later", "1")
		for _, env := range []map[string]string{topology(0), nil} {
			d.killAndRestart(1, env)
			if state := d.state(1); state.Replication.Source != "" || state.Replication.IsReceiving || state.Progress.Position != "" {
				t.Errorf("after a restart it says %+v", state)
			}
		}
		if err := d.client(1).Get(t.Context(), "first").Err(); !goredis.HasErrorPrefix(err, "MASTERDOWN") {
			t.Errorf("it answers a read with %v", err)
		}
		if followers := d.state(0).Replication.Followers; followers != "" {
			t.Errorf("%s is attached", followers)
		}
		d.follow(1, 0)
		d.awaitCurrent(1, 0)
		d.checkSameRows(1, 0)
		// What can't be written down isn't done.
		file := filepath.Join(d.members[1].DataFolder(), "db", "server.conf")
		d.must("be in the way", errors.Join(os.Rename(file, file+".old"), os.Mkdir(file, 0o700)))
		if err := d.operator(1).Fence(t.Context()); err == nil {
			t.Error("it says that it is fenced, and would forget it")
		}
		for verb, err := range map[string]error{
			"follow": d.operator(0).Follow(t.Context(), plan.Source{Host: d.members[1].Host(), Port: engine.Port}), "fence": d.operator(0).Fence(t.Context()),
		} {
			if err == nil || !strings.Contains(err.Error(), "is a primary") {
				t.Errorf("%s, of the primary, gives %v", verb, err)
			}
		}
	})
}

func TestAPrimaryThatHearsOfTooFewReplicasTakesNoWritesAndAnswers(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		d.require(plan.Acknowledgement{Count: 1, Names: []string{"orders-1"}})
		d.write(0, "key", "1")
		d.members[1].Freeze()
		client, accepted, began := d.client(0), 0, time.Now()
		eventually(t, "it refuses writes", func(ctx context.Context) error {
			err := client.Set(ctx, "key", "2", 0).Err()
			if err == nil {
				accepted++
				return errors.New("it took a write")
			}
			if !goredis.HasErrorPrefix(err, "NOREPLICAS") {
				t.Errorf("it answers a write with %v", err)
			}
			return nil
		})
		t.Logf("it took %d writes in %s without a replica", accepted, time.Since(began))
		// The lag is counted in whole seconds, and looked at once a second; and some for
		// a slow machine.
		const bound = (5 + 2 + 3) * time.Second
		if took := time.Since(began); took > bound {
			t.Errorf("it took writes for %s", took)
		}
		if state := d.state(0); state.Replication.Required != "1 of " {
			t.Errorf("it says %+v", state)
		}
		d.killAndRestart(0, topology(0))
		if err := d.client(0).Set(t.Context(), "key", "3", 0).Err(); !goredis.HasErrorPrefix(err, "NOREPLICAS") {
			t.Errorf("restarted, it answers a write with %v", err)
		}
		d.must("require none", d.operator(0).Require(t.Context(), plan.Acknowledgement{}))
		d.write(0, "key", "4")
		if state := d.state(0); state.Replication.Required != "none" {
			t.Errorf("it says %+v", state)
		}
	})
}

// TestAMemberWithoutDataIsNeverAPrimary has a new member sign in at its source,
// and get nothing.
func TestAMemberWithoutDataIsNeverAPrimary(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 0)
		admin := d.clientAs(0, engine.AdminUsername, adminPassword)
		d.must("forbid copies", admin.Do(t.Context(), "ACL", "SETUSER", "replicator", "-psync").Err())
		d.join(1, topology(0)).WaitFor(d.Probe()...)
		for range 2 {
			state := d.await(1, "fails", func(state plan.EngineState) bool { return state.Replication.Failure != "" })
			if state.Role != v1alpha1.MemberRoleReplica || state.Progress != (plan.Progress{IsDrained: true, Lag: -1}) || state.Replication.IsCurrent {
				t.Errorf("without data it says %+v", state)
			}
			if err := d.client(1).Get(t.Context(), "first").Err(); !goredis.HasErrorPrefix(err, "MASTERDOWN") {
				t.Errorf("it answers a read with %v", err)
			}
			if err := d.operator(1).Promote(t.Context(), plan.Acknowledgement{}); err == nil || !strings.Contains(err.Error(), "hasn't got the data") {
				t.Errorf("it is promoted: %v", err)
			}
			d.killAndRestart(1, topology(0))
		}
		d.fence(1)
		for range 2 {
			if err := d.operator(1).Promote(t.Context(), plan.Acknowledgement{}); err == nil || !strings.Contains(err.Error(), "hasn't got the data") {
				t.Errorf("fenced, it is promoted: %v", err)
			}
			d.killAndRestart(1, topology(0))
		}
		d.must("permit copies", admin.Do(t.Context(), "ACL", "SETUSER", "replicator", "+psync").Err())
		d.follow(1, 0)
		d.awaitCurrent(1, 0)
		eventually(t, "the copy is on the disk", func(context.Context) error {
			manifest, err := filepath.Glob(filepath.Join(d.members[1].DataFolder(), "db/appendonlydir/*.2.base.*"))
			if err == nil && len(manifest) == 0 {
				err = errors.New("no second base file")
			}
			return err
		})
		d.members[0].Kill()
		// Whoever had the data once has some, also where it can't say which.
		d.killAndRestart(1, topology(0))
		d.fence(1)
		d.promote(1, plan.Acknowledgement{})
		if rows := d.rows(1); rows["first"] != "1" {
			t.Errorf("it has %v", rows)
		}
	})
}

func TestAPrimaryWhoseDataAreGoneStartsNoMoreAndEmptiesNobody(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		first := d.members[0]
		first.Kill()
		d.must("lose the file", os.RemoveAll(filepath.Join(first.DataFolder(), "db", "appendonlydir")))
		first.Restart()
		if exit := first.Wait(); exit.Code != 66 || !strings.Contains(first.TerminationMessage(), "the append-only file with its data is missing") {
			t.Errorf("without its file it ended with %d and %q", exit.Code, first.TerminationMessage())
		}
		first.Delete(0)
		first.LoseVolume()
		first.Create()
		if exit := first.Wait(); exit.Code != 66 || !strings.Contains(first.TerminationMessage(), "The volume is empty") {
			t.Errorf("without its volume it ended with %d and %q", exit.Code, first.TerminationMessage())
		}
		d.fence(1)
		d.promote(1, plan.Acknowledgement{})
		first.SetEnv(topology(1))
		first.Restart()
		d.awaitCurrent(0, 1)
		if rows := d.rows(0); rows["first"] != "1" {
			t.Errorf("it has %v", rows)
		}
	})
}

func TestNothingIsGivenUpBeforeTheSourceAnswers(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		wish := topology(0, plan.TopologyCloneVariable, "orders-1:again")
		for sentence, row := range map[string]struct{ away, back func() }{
			"it is gone":           {func() { d.members[0].Kill() }, func() { d.members[0].Restart() }},
			"it is in no network":  {func() { d.members[0].Isolate() }, func() { d.members[0].Rejoin() }},
			"it has another key":   {func() { d.setReplicator("resetpass") }, func() { d.setReplicator("#" + accountOf(dbclient.Target{AppPassword: adminPassword}).digest) }},
			"it is itself without": {func() { d.fenceUnasked(0) }, func() { d.promote(0, plan.Acknowledgement{}) }},
		} {
			d.members[1].Kill()
			before := listing(t, d.members[1].DataFolder())
			row.away()
			d.members[1].SetEnv(wish)
			d.members[1].Restart()
			eventually(t, sentence+": it waits", func(context.Context) error {
				if output := d.members[1].Output(); strings.Count(output, "Waiting for orders-0") != 1 {
					return fmt.Errorf("it has printed %q", output)
				}
				return nil
			})
			began := time.Now()
			if exit := d.members[1].Stop(); exit.Code != 143 || time.Since(began) > 2*time.Second {
				t.Errorf("%s: SIGTERM ended it with %d after %s", sentence, exit.Code, time.Since(began))
			}
			if after := listing(t, d.members[1].DataFolder()); after != before {
				t.Errorf("%s: the volume held %s, and then %s", sentence, before, after)
			}
			row.back()
			d.members[0].WaitFor("/bin/sh", "-c", fmt.Sprintf(`[ "$(%s-cli ping)" = PONG ]`, s.Type()))
			d.members[1].Restart() // for the next one
			d.awaitCurrent(1, 0)
			d.members[1].Kill()
			d.members[1].SetEnv(topology(0))
			d.must("forget the wish", os.Remove(filepath.Join(d.members[1].DataFolder(), "cloned")))
			d.members[1].Restart()
			d.awaitCurrent(1, 0)
		}
		// A wish to the primary itself is none.
		d.killAndRestart(0, topology(0, plan.TopologyCloneVariable, "orders-0:self"))
		if state := d.state(0); state.Role != v1alpha1.MemberRolePrimary || d.rows(0)["first"] != "1" {
			t.Errorf("told to copy from itself, it says %+v", state)
		}
	})
}

// TestAnyReplicaThatIsAttachedCounts is why all of them are fenced: also one that
// the database knows nothing of any more.
func TestAnyReplicaThatIsAttachedCounts(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 2)
		d.require(plan.Acknowledgement{Count: 1, Names: []string{"orders-1"}})
		d.fence(1)
		d.await(0, "has one follower", func(state plan.EngineState) bool { return state.Replication.Followers == "orders-2" })
		d.write(0, "key", "1")
		d.fence(2)
		d.await(0, "has none", func(state plan.EngineState) bool { return state.Replication.Followers == "" })
		if err := d.client(0).Set(t.Context(), "key", "2", 0).Err(); !goredis.HasErrorPrefix(err, "NOREPLICAS") {
			t.Errorf("it answers a write with %v", err)
		}
	})
}

// TestACopyThatIsBrokenOffLeavesTheFormerData kills a member in the middle of
// loading what is to replace its data.
func TestACopyThatIsBrokenOffLeavesTheFormerData(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		d.fence(1)
		client := d.client(0)
		for i := range 500 {
			d.must("write", client.Set(t.Context(), strconv.Itoa(i), strings.Repeat("x", 1000), 0).Err())
		}
		d.killAndRestart(1, topology(0))
		admin := d.clientAs(1, engine.AdminUsername, adminPassword)
		// In microseconds for each key, and in bytes between two answers.
		for setting, value := range map[string]string{"key-load-delay": "20000", "loading-process-events-interval-bytes": "1024"} {
			d.must("slow down", admin.ConfigSet(t.Context(), setting, value).Err())
		}
		d.follow(1, 0)
		state := d.await(1, "loads", func(state plan.EngineState) bool { return state.IsLoading })
		if state.Progress.Position != "" || state.Replication.IsReceiving || state.Replication.IsCurrent {
			t.Errorf("while it loads, it says %+v", state)
		}
		if err := d.operator(1).Promote(t.Context(), plan.Acknowledgement{}); err == nil || !strings.Contains(err.Error(), "loading") {
			t.Errorf("while it loads, it is promoted: %v", err)
		}
		d.members[1].Kill()
		d.members[0].Kill()
		d.members[1].Restart()
		d.members[1].WaitFor(d.Probe()...)
		if state := d.state(1); state.Progress.Position != "" {
			t.Errorf("afterwards it says %+v", state)
		}
		d.fence(1)
		d.promote(1, plan.Acknowledgement{})
		if rows := d.rows(1); len(rows) != 1 || rows["first"] != "1" {
			t.Errorf("it has %d rows, want the former one", len(rows))
		}
	})
}

// TestACopyGoesOnWhereverTheScriptWasKilled lays out what a killed script leaves.
func TestACopyGoesOnWhereverTheScriptWasKilled(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		member, wish := d.members[1], topology(0, plan.TopologyCloneVariable, "orders-1:again")
		data := func(names ...string) string { return filepath.Join(append([]string{member.DataFolder()}, names...)...) }
		for sentence, leave := range map[string]func() error{
			"while it made the new data": func() error { return os.MkdirAll(data("init", "x"), 0o777) },
			"when the old ones were on their way out": func() error {
				return errors.Join(os.MkdirAll(data("init"), 0o777), os.Rename(data("db"), data("gone")))
			},
			"before the old ones were removed": func() error { return os.MkdirAll(data("gone", "x"), 0o777) },
			"before it noted what it had done": func() error { return nil },
		} {
			member.Kill()
			d.must(sentence, leave())
			for _, left := range []string{"init", "gone"} {
				d.must("give it to the member", errors.Join(chownAll(data(left)), os.RemoveAll(data("cloned"))))
			}
			member.SetEnv(wish)
			member.Restart()
			d.awaitCurrent(1, 0)
			d.checkSameRows(1, 0)
			if after := listing(t, member.DataFolder()); strings.Contains(after, "gone") || strings.Contains(after, "init") || !strings.Contains(after, "cloned") {
				t.Errorf("%s: afterwards the volume holds %s", sentence, after)
			}
		}
	})
}

// chownAll gives all that is below a folder to the member's user; none is fine.
func chownAll(folder string) error {
	const user = 999
	return filepath.Walk(folder, func(path string, _ os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.Lchown(path, user, user))
	})
}

func (d *database) setReplicator(rule string) {
	d.t.Helper()
	d.must("change the account", d.clientAs(0, engine.AdminUsername, adminPassword).Do(d.t.Context(), "ACL", "SETUSER", "replicator", rule).Err())
}

// fenceUnasked makes a replica of nobody of a primary, whatever that loses.
func (d *database) fenceUnasked(ordinal int) {
	d.t.Helper()
	d.must("make a replica", d.operator(ordinal).do(d.t.Context(), nowhere()))
}

func TestASourceThatNeverAnswersEndsTheStart(t *testing.T) {
	if testing.Short() {
		return // a minute
	}
	s := server{engine.NewValkey(), "valkey/valkey:9.1"}
	d := s.newDatabase(t, 0)
	member := d.join(1, topology(7))
	eventuallyWithin(t, 4*patience, "it gives up", func(context.Context) error {
		if member.TerminationMessage() == "" {
			return errors.New("it still tries")
		}
		return nil
	})
	if exit := member.Wait(); exit.Code != 69 || !strings.Contains(member.TerminationMessage(), "The data of orders-7, the primary, can't be copied") {
		t.Errorf("it ended with %d and %q", exit.Code, member.TerminationMessage())
	}
}

func TestReplicationGoesOnAfterTheOperatorsPasswordChanged(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		const changed = `another "one" \ $'x`
		d := s.newDatabase(t, 2)
		for _, ordinal := range []int{1, 2, 0} {
			d.members[ordinal].Stop()
			d.must("write the Secret", d.members[ordinal].WritePasswords(appPassword, changed))
			d.members[ordinal].Restart()
			d.members[ordinal].WaitFor(d.Probe()...)
		}
		d.write(0, "later", "1")
		for replica := 1; replica <= 2; replica++ {
			eventually(t, name(replica)+" has the row", func(ctx context.Context) error {
				return d.client(replica).Get(ctx, "later").Err()
			})
			d.must("fence", d.operatorWith(replica, changed).Fence(t.Context()))
			d.must("follow", d.operatorWith(replica, changed).Follow(t.Context(), plan.Source{Host: d.members[0].Host(), Port: engine.Port}))
			eventually(t, name(replica)+" follows", func(ctx context.Context) error {
				return d.client(replica).Get(ctx, "later").Err()
			})
			if _, err := d.operator(replica).State(t.Context()); !errors.Is(err, ErrRefused) {
				t.Errorf("the former password gives %v", err)
			}
		}
	})
}

// TestNoVolumeHoldsThePasswordOfTheSource looks for it in each of the forms that
// stand in a file of the server's, once every verb has written one.
func TestNoVolumeHoldsThePasswordOfTheSource(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 1)
		d.must("require", d.operator(0).Require(t.Context(), plan.Acknowledgement{}))
		d.fence(1)
		d.follow(1, 0)
		d.awaitCurrent(1, 0)
		d.must("demote", d.operator(0).Demote(t.Context()))
		d.promote(1, plan.Acknowledgement{})
		forms := regexp.MustCompile(strings.Join([]string{
			regexp.QuoteMeta(adminPassword), regexp.QuoteMeta(strings.ReplaceAll(strings.ReplaceAll(adminPassword, `\`, `\\`), `"`, `\"`)),
			hex.EncodeToString([]byte(adminPassword)), regexp.QuoteMeta(`\x61\x64\x6d`), `masterauth`,
		}, "|"))
		for ordinal, member := range d.members {
			seen, err := member.Exec(t.Context(), "", "/bin/sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; grep -ra . /data /tmp")
			if err != nil || !strings.Contains(seen, "Generated by CONFIG REWRITE") {
				t.Fatalf("the rewritten file isn't among what was read: %v", err)
			}
			if found := forms.FindString(seen + member.Output()); found != "" {
				t.Errorf("%s: a form of the password stands somewhere: %q", name(ordinal), found)
			}
			if kept := d.clientAs(ordinal, engine.AdminUsername, adminPassword).ConfigGet(t.Context(), "masterauth").Val()["masterauth"]; kept != adminPassword {
				t.Errorf("%s signs in with %q", name(ordinal), kept)
			}
		}
	})
}

func TestTheReplicatorMayCopyAndDoNothingElse(t *testing.T) {
	forOneOrEach(t, func(t *testing.T, s server) {
		d := s.newDatabase(t, 0)
		replicator, app := d.clientAs(0, "replicator", adminPassword), d.client(0)
		for command, isAllowed := range map[string]bool{
			"PING": true, "REPLCONF listening-port 1": true, "GET k": false, "INFO": false, "CONFIG GET *": false, "SET k v": false, "KEYS *": false,
			"ACL LIST": false, "REPLICAOF NO ONE": false, "SYNC": false, "SUBSCRIBE c": false, "PUBLISH c m": false, "SHUTDOWN NOSAVE": false,
		} {
			checkAllowed(t, replicator, "the replicator", command, isAllowed)
		}
		for _, command := range []string{"PSYNC ? -1", "SYNC", "REPLCONF listening-port 1", "CLIENT PAUSE 1", "FAILOVER"} {
			checkAllowed(t, app, "the application", command, false)
		}
	})
}
