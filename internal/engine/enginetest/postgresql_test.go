//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
)

// postgresMember is a member as the operator renders it, with its volume empty.
func postgresMember(t *testing.T) Member {
	t.Helper()
	engine := postgresql.New()
	versions := engine.Versions()
	image, isKnown := engine.Image(versions[len(versions)-1])
	if !isKnown {
		t.Fatalf("there is no version %s", versions[len(versions)-1])
	}
	return Member{
		Image: image, Files: engine.Files(nil), LiveFiles: engine.LiveFiles(plan.LiveDefaults(engine.Parameters())),
		Command: engine.Command(), Stop: engine.Stop(), AuthPassword: "app", AdminPassword: "admin",
		Env: map[string]string{plan.TopologyStateVariable: string(plan.TopologyNew)},
	}
}

// identity is that of the data directory that a member serves, asked from another
// member. It is given once, when the directory is made.
func identity(t *testing.T, from, of *Running) string {
	t.Helper()
	answer, err := from.Exec(t.Context(), "", "/bin/sh", "-c",
		`PGPASSWORD=$(cat /secrets/admin/password) PGCONNECT_TIMEOUT=10 exec psql -h "$1" -U operator -Atc 'SELECT system_identifier FROM pg_control_system()' postgres`, "sh", of.Host())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

func TestPostgreSQLsMembersShareANetwork(t *testing.T) {
	network := NewNetwork(t, "orders")
	member, other := network.Start(0, postgresMember(t)), network.Start(1, postgresMember(t))
	for _, started := range []*Running{member, other} {
		started.WaitFor(postgresql.New().Probe()...)
	}
	first, address := identity(t, other, member), member.Address()
	if first == identity(t, other, other) {
		t.Fatalf("both have the data directory %s", first)
	}

	// What pg_isready ends with says whether the server took the connection, and 2
	// that there was no answer.
	answers := func() string {
		answer, err := other.Exec(t.Context(), "", "/bin/sh", "-c", `pg_isready --quiet --timeout=1 --host="$1"; echo $?`, "sh", member.Host())
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(answer)
	}
	for sentence, row := range map[string]struct{ begin, end func() }{
		"isolated": {func() { member.Isolate(other) }, member.Rejoin},
		"frozen":   {member.Freeze, member.Thaw},
	} {
		before := answers()
		row.begin()
		during := answers()
		row.end()
		if after := answers(); before != "0" || during != "2" || after != "0" {
			t.Errorf("%s: before pg_isready ends with %s, then %s, and afterwards %s", sentence, before, during, after)
		}
	}

	member.SetEnv(map[string]string{plan.TopologyStateVariable: string(plan.TopologyInitialized)})
	if exit := member.Replace(patience); exit.Code != 0 || !strings.Contains(exit.Output, "received fast shutdown request") {
		t.Errorf("deleted, it ended with %d, and not by a fast shutdown", exit.Code)
	}
	member.WaitFor(postgresql.New().Probe()...)
	if now := identity(t, other, member); now != first || member.Address() == address {
		t.Errorf("made anew it serves %s at %s, before %s at %s", now, member.Address(), first, address)
	}

	member.Delete(patience)
	member.LoseVolume()
	member.Create()
	if exit := member.Wait(); exit.Code != 66 {
		t.Errorf("on the empty volume it ended with %d, want 66: %q", exit.Code, member.TerminationMessage())
	}
	member.SetEnv(map[string]string{plan.TopologyStateVariable: string(plan.TopologyNew)})
	member.Restart()
	member.WaitFor(postgresql.New().Probe()...)
	if now := identity(t, other, member); now == first {
		t.Errorf("on the empty volume it serves %s as before", now)
	}
}
