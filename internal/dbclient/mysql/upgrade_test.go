//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// formerMariaDB is a member of the older version, with data, that has ended.
func formerMariaDB(t *testing.T, end func(running) enginetest.Exit) (former, current product, made enginetest.Member) {
	t.Helper()
	former, current = mariaDBProduct(), mariaDBProduct()
	former.image = "mariadb:10.11"
	made = former.member(filepath.Join(t.TempDir(), "data"))
	member := former.start(t, made)
	member.promote(t)
	execute(t, member.app(t), "CREATE TABLE app.t (i INT, s TEXT)", "INSERT INTO app.t VALUES (42, 'é')", "CREATE FUNCTION app.f() RETURNS INT RETURN 1")
	if version := member.state(t).Version; !strings.HasPrefix(version, "10.11.") {
		t.Fatalf("the older version is %s", version)
	}
	end(member)
	made.Image = current.image
	return former, current, made
}

// checkUpgraded looks at a member of the newer version on the former's data.
func checkUpgraded(t *testing.T, member running) {
	t.Helper()
	state := member.state(t)
	if !strings.HasPrefix(state.Version, "11.8.") || state.Role != v1alpha1.MemberRolePrimary {
		t.Errorf("it says %+v", state)
	}
	if got := answer(t, member.app(t), "SELECT CONCAT(i, s, app.f()) FROM app.t"); got != "42é1" {
		t.Errorf("the table holds %q", got)
	}
	for name, want := range map[string]string{"engine": "mariadb 11.8\n", "db/mariadb_upgrade_info": "11.8."} {
		content, err := os.ReadFile(filepath.Join(member.DataFolder(), name))
		if err != nil || !strings.HasPrefix(string(content), want) {
			t.Errorf("%s holds %q (%v)", name, content, err)
		}
	}
	// Three are the application's, and none the upgrade's.
	if got := answer(t, member.client(t, member.product.engine.AdminUsername(), adminPassword), "SELECT @@GLOBAL.gtid_current_pos"); got != "0-1-3" {
		t.Errorf("it has the transactions %s", got)
	}
	// What is done once isn't done again.
	member.Stop()
	member.again()
	if strings.Contains(member.Output(), "private.sock") {
		t.Errorf("the next start upgrades it once more:\n%s", member.Output())
	}
}

func TestANewerMariaDBOpensOlderDataAndNotTheOtherWayRound(t *testing.T) {
	for way, end := range map[string]func(running) enginetest.Exit{
		"after a clean end": func(r running) enginetest.Exit { return r.Stop() },
		"after a kill":      func(r running) enginetest.Exit { return r.Kill() },
	} {
		t.Run(way, func(t *testing.T) {
			former, current, made := formerMariaDB(t, end)
			member := current.start(t, made)
			checkUpgraded(t, member)
			member.Stop()

			made.Image = former.image
			older := enginetest.Start(t, made)
			want := "The data were last opened by mariadb 11.8, and this is mariadb 10.11, which is older"
			if exit := older.Wait(); exit.Code != 65 || !strings.Contains(older.TerminationMessage(), want) {
				t.Errorf("the older one ended with %d and %q:\n%s", exit.Code, older.TerminationMessage(), exit.Output)
			}
		})
	}
}

func TestAnUpgradeCanBeInterrupted(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			_, current, made := formerMariaDB(t, func(r running) enginetest.Exit { return r.Stop() })
			member := running{enginetest.Start(t, made), current, made}
			member.WaitFor("mariadb-admin", "--no-defaults", "--socket=/run/database/private.sock", "ping")
			member.Signal(signal)
			if exit := member.Wait(); exit.Code != 128+int(signal) {
				t.Errorf("it ended with %d:\n%s", exit.Code, exit.Output)
			}
			member.again()
			checkUpgraded(t, member)
		})
	}
}
