//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// awaitOutput waits until a member has printed something.
func awaitOutput(t *testing.T, running *enginetest.Running, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	for !strings.Contains(running.Output(), want) {
		if ctx.Err() != nil {
			t.Fatalf("it hasn't printed %q, but\n%s", want, running.Output())
		}
		pause(ctx)
	}
}

func TestAMemberWhoseSourceIsAwayEndsAtOnceWhenAsked(t *testing.T) {
	c := &cluster{t: t, version: "18", password: adminPassword, network: enginetest.NewNetwork(t, "orders")}
	c.add(topologyOf(plan.TopologyInitialized, "orders-7"))
	awaitOutput(t, c.members[0], "Waiting for orders-7")
	asked := time.Now()
	if exit := c.members[0].Stop(); exit.Code != 143 || time.Since(asked) > 5*time.Second {
		t.Errorf("it ended with %d after %s", exit.Code, time.Since(asked))
	}
	if got := list(t, c.members[0].DataFolder()); strings.Contains(strings.Join(got, " "), "db/") {
		t.Errorf("it has left %v", got)
	}
}

func TestAMemberWithoutASourceSaysSoAndEnds(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := &cluster{t: t, version: "18", password: adminPassword, network: enginetest.NewNetwork(t, "orders")}
	began := time.Now()
	c.add(topologyOf(plan.TopologyInitialized, "orders-7"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*clusterPatience)
	defer cancel()
	for c.members[0].TerminationMessage() == "" && ctx.Err() == nil {
		pause(ctx)
	}
	exit, message := c.members[0].Wait(), c.members[0].TerminationMessage()
	if took := time.Since(began); exit.Code != 69 || !strings.Contains(message, "orders-7") || took < 50*time.Second || took > 80*time.Second {
		t.Errorf("it ended with %d after %s: %q", exit.Code, took, message)
	}
	if strings.Count(exit.Output, "Waiting for") != 1 || strings.Count(exit.Output, "\n") > 6 {
		t.Errorf("it printed\n%s", exit.Output)
	}
}

func TestACopyThatWasCutOffIsMadeAnewAndAWholeOneIsKept(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "18", 1)
	c.app(0).mustQuery("CREATE TABLE t AS SELECT generate_series(1, 200000) AS i")
	c.add(topologyOf(plan.TopologyInitialized, "orders-0"))
	awaitFile(t, filepath.Join(c.members[1].DataFolder(), "init", "PG_VERSION"))
	c.members[1].Kill()
	if _, err := os.Stat(filepath.Join(c.members[1].DataFolder(), "db")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("there are data (%v)", err)
	}
	c.members[1].Restart()
	c.await(1, "is current", isCurrent)
	c.awaitRows(1, "SELECT count(*) FROM t", "200000")

	// The operator is gone, the volume is lost, and all the same it comes back.
	c.members[1].Delete(0)
	c.members[1].LoseVolume()
	c.members[1].Create()
	state := c.await(1, "is current", isCurrent)
	c.awaitRows(1, "SELECT count(*) FROM t", "200000")
	if wanted, err := conninfo("orders-1", sourceOf(0, false)); err != nil || state.Replication.Source != sourceOf(0, false).Host || state.Replication.Acknowledges {
		t.Errorf("it says %+v (%v)", state, err)
	} else if standing, err := c.asked[1].standing(t.Context()); err != nil || standing.conninfo != wanted {
		t.Errorf("the script has it connect with\n%s, and the operator would with\n%s (%v)", standing.conninfo, wanted, err)
	}

	// Nor does it copy itself, or in a database that has nothing.
	c.members[1].Delete(0)
	c.members[1].LoseVolume()
	c.members[1].SetEnv(topologyOf(plan.TopologyInitialized, "orders-1", "orders-1:x"))
	c.members[1].Create()
	if exit := c.members[1].Wait(); exit.Code != 66 {
		t.Errorf("it ended with %d, and printed\n%s", exit.Code, exit.Output)
	}
}

// A member that gives up its data and is ended at any moment is a replica of the
// primary in the end, and never takes a write.
func TestAMemberThatIsEndedWhileItGivesUpItsDataGoesOnTheNextTime(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "17", 2)
	c.app(0).mustQuery("CREATE TABLE t AS SELECT generate_series(1, 50000) AS i")
	c.fence(1)
	c.promote(1, plan.Acknowledgement{})
	c.app(1).mustQuery("CREATE TABLE other (i int)")
	folder := c.members[1].DataFolder()
	for _, moment := range []string{"init/PG_VERSION", "init/standby.signal", "db/standby.signal"} {
		c.members[1].Kill()
		c.members[1].SetEnv(topologyOf(plan.TopologyInitialized, "orders-0", "orders-1:"+strings.ReplaceAll(moment, "/", "-")))
		c.members[1].Restart()
		awaitFile(t, filepath.Join(folder, moment))
		c.members[1].Kill()
	}
	c.members[1].Restart()
	c.await(1, "is current", isCurrent)
	c.awaitRows(1, "SELECT count(*), to_regclass('other') IS NULL FROM t", "50000\nt")
	if content, err := os.ReadFile(filepath.Join(folder, "cloned")); err != nil || strings.TrimSpace(string(content)) != "db-standby.signal" {
		t.Errorf("it has granted %q (%v)", content, err)
	}

	// One that is of another cluster can't be rewound, and is copied whole.
	stranger := newMember(t, "17")
	stranger.Data = c.members[1].DataFolder()
	c.members[1].Delete(0)
	c.members[1].LoseVolume()
	c.members[1].SetEnv(topologyOf(plan.TopologyNew, ""))
	c.members[1].Create()
	fresh := c.await(1, "is fenced", isFenced)
	if order := compare(fresh, c.await(0, "is primary", isPrimary)); order != plan.OrderApart {
		t.Errorf("another cluster is %d to this one", order)
	}
	c.members[1].SetEnv(topologyOf(plan.TopologyInitialized, "orders-0", "orders-1:whole"))
	c.members[1].Kill()
	c.members[1].Restart()
	c.await(1, "is current", isCurrent)
	if !strings.Contains(c.members[1].Output(), "can't be rewound") {
		t.Errorf("it printed\n%s", c.members[1].Output())
	}
	c.awaitRows(1, "SELECT count(*) FROM t", "50000")
}

func TestAFormerPrimaryTakesNoWritesFromItsStartOn(t *testing.T) {
	c := newCluster(t, "18", 1)
	c.app(0).mustQuery("CREATE TABLE t (i int)")
	c.require(0, plan.Acknowledgement{Count: 1, Names: []string{"orders-1"}})
	for sentence, env := range map[string]map[string]string{
		"the topology is gone":   {plan.MembersDomainVariable: membersDomain},
		"it is the primary":      topologyOf(plan.TopologyInitialized, "orders-0", "orders-0:x"),
		"it is in no topology":   nil,
		"the topology knows it":  topologyOf(plan.TopologyNew, "orders-0"),
		"nobody is the primary":  topologyOf(plan.TopologyInitialized, ""),
		"others give up theirs":  topologyOf(plan.TopologyInitialized, "orders-0", "orders-1:x", "orders-00:y"),
		"it was initialised now": {plan.TopologyStateVariable: "new"},
	} {
		c.members[0].Kill()
		c.members[0].SetEnv(env)
		c.members[0].Restart()
		if state := c.await(0, "serves", func(plan.EngineState) bool { return true }); state.Role != v1alpha1.MemberRolePrimary || state.Replication.Required != "1 of orders-1" {
			t.Errorf("%s: it says %+v", sentence, state)
		}
	}
	for _, end := range []func(){func() { c.members[0].Kill() }, func() { stopAsTheKubeletDoes(t, c.members[0]) }} {
		end()
		c.members[0].SetEnv(topologyOf(plan.TopologyInitialized, "orders-1"))
		c.members[0].Restart()
		state := c.await(0, "serves", func(plan.EngineState) bool { return true })
		if state.Role != v1alpha1.MemberRoleReplica || state.Replication.Source != "" {
			t.Errorf("it says %+v", state)
		}
		c.await(0, "is fenced", isFenced)
		c.promote(0, plan.Acknowledgement{})
		c.app(0).mustQuery("INSERT INTO t VALUES (1)")
	}
	// It stays one when the topology is gone again.
	c.members[0].Signal(syscall.SIGKILL)
	c.members[0].Wait()
	c.members[0].Restart()
	c.await(0, "is fenced", isFenced)
	c.members[0].SetEnv(nil)
	c.members[0].Kill()
	c.members[0].Restart()
	c.await(0, "is fenced", isFenced)
}

// The passwords of all are the primary's, and each member's for its source is in
// its own file: whichever is restarted last, replication goes on.
func TestAfterANewOperatorsPasswordReplicationGoesOn(t *testing.T) {
	if isForLater(t) {
		return
	}
	c := newCluster(t, "18", 3)
	c.app(0).mustQuery("CREATE TABLE t (i int)")
	c.synchronise()
	c.password = `another: "p'ass\word` + "\r:"
	for _, ordinal := range []int{2, 0, 1} {
		if err := c.members[ordinal].WritePasswords(appPassword, c.password); err != nil {
			t.Fatal(err)
		}
		c.members[ordinal].Kill()
		c.members[ordinal].Restart()
		c.asked[ordinal] = dial(t, c.members[ordinal], c.password)
		if ordinal == 2 {
			continue // the primary doesn't know the password yet
		}
		c.await(ordinal, "serves", func(plan.EngineState) bool { return true })
	}
	c.await(0, "has its followers", func(s plan.EngineState) bool { return s.Replication.Followers == "orders-1,orders-2" })
	for _, ordinal := range []int{1, 2} {
		c.await(ordinal, "is current", isCurrent)
	}
	c.app(0).mustQuery("INSERT INTO t VALUES (1)")
	c.awaitRows(1, "SELECT i FROM t", "1")
	c.awaitRows(2, "SELECT i FROM t", "1")
}
