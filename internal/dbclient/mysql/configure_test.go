//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
)

func TestWhatAServerDoesntTakeIsRefusedByTheParametersName(t *testing.T) {
	forEachVersionInFull(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		connection := member.operator(t, adminPassword)
		before := member.state(t)
		for name, value := range map[string]string{
			"max_connections":                     "1000000",
			"connect_timeout":                     "soon",
			"sql_mode":                            "NONSENSE",
			"time_zone":                           "Mars/Olympus",
			"collation_server":                    "nonsense",
			"innodb_rollback_on_timeout":          "1",
			"no_such_parameter":                   "1",
			"max_connections` = 9, `wait_timeout": "1",
		} {
			err := connection.Configure(t.Context(), plan.Settings{name: value})
			var refusal *dbclient.Refusal
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Reason, name+": ") {
				t.Errorf("%s = %s gives %v", name, value, err)
			}
		}
		// No text of a value is SQL.
		err := connection.Configure(t.Context(), plan.Settings{"event_scheduler": `x', max_connections = 99, wait_timeout = '1`})
		if err == nil {
			t.Error("a value that is no value is taken")
		}
		if after := member.state(t); after != before {
			t.Errorf("it says\n%+v\nand said\n%+v", after, before)
		}
	})
}

// live are the defaults, but for some.
func (p product) live(changed plan.Settings) map[string]string {
	settings := plan.LiveDefaults(p.engine.Parameters())
	maps.Copy(settings, changed)
	return p.engine.LiveFiles(settings)
}

func TestAStartTakesTheNewestLiveParametersOrTheLastThatWereGood(t *testing.T) {
	forEachVersionInFull(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		made.LiveFiles = p.live(plan.Settings{"max_connections": "100"})
		member := p.start(t, made)
		member.checkSetting(t, "max_connections", "100")
		for _, row := range []struct {
			live map[string]string
			want string
			said string
		}{
			{p.live(plan.Settings{"max_connections": "101"}), "101", ""},
			{p.live(plan.Settings{"max_connections": "102", "no_such_parameter": "1"}), "101", "no-such-parameter=1"},
			{p.live(plan.Settings{"max_connections": "103", "sql_mode": "NONSENSE"}), "101", "'NONSENSE' to 'sql_mode'"},
			{p.live(plan.Settings{"max_connections": "104", "innodb_flush_neighbors": "x"}), "101", "innodb-flush-neighbors"},
			{p.live(plan.Settings{"max_connections": "105"}), "105", ""},
		} {
			member.Kill()
			if err := member.WriteLive(row.live); err != nil {
				t.Fatal(err)
			}
			member.again()
			member.checkSetting(t, "max_connections", row.want)
			if said := member.Output(); row.said == "" && strings.Contains(said, "stay in use") || row.said != "" && !strings.Contains(said, row.said) {
				t.Errorf("it says, and not %q:\n%s", row.said, said)
			}
		}
		if left, err := filepath.Glob(filepath.Join(made.Data, "live.*.new")); err != nil || len(left) > 0 {
			t.Errorf("it left %v (%v)", left, err)
		}
	})
}

func (r running) checkSetting(t *testing.T, name, want string) {
	t.Helper()
	if got := plan.ParseSettings(r.state(t).Settings)[name]; got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestANewMemberWithLiveParametersThatAreRefusedStartsWithout(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member("")
		made.LiveFiles = p.live(plan.Settings{"sql_mode": "NONSENSE"})
		p.start(t, made).checkSetting(t, "max_connections", "151")
	})
}

func TestAConfigurationThatTheServerDoesntTakeIsToldInTheTerminationMessage(t *testing.T) {
	forEachVersionInFull(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		for _, row := range []struct {
			fixed plan.Settings
			want  string
		}{
			{plan.Settings{"no_such_parameter": "1"}, "no-such-parameter=1"},
			{plan.Settings{"innodb_ft_min_token_size": "x"}, "innodb-ft-min-token-size"},
		} {
			made.Files = p.engine.Files(row.fixed)
			member := enginetest.Start(t, made)
			exit, message := member.Wait(), member.TerminationMessage()
			if exit.Code != 78 || !strings.HasPrefix(message, "The server doesn't take its configuration: ") || !strings.Contains(message, row.want) {
				t.Errorf("it ended with %d and %q:\n%s", exit.Code, message, exit.Output)
			}
			if strings.Contains(message, "\n") || strings.Contains(message, "202") {
				t.Errorf("its message has lines or a time: %q", message)
			}
			if _, err := os.Stat(filepath.Join(made.Data, "db")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it made data: %v", err)
			}
		}
		// What was refused is no obstacle to what isn't.
		made.Files = p.engine.Files(nil)
		p.start(t, made)
	})
}

// Each start sets accounts, and the first one makes a database: by SQL, which
// follows the parameters.
func TestNoParametersKeepADatabaseFromBeingMadeAndUpgraded(t *testing.T) {
	rounds := map[string]int{"with the least": 1, "with the greatest": 2}
	if testing.Short() {
		delete(rounds, "with the greatest")
	}
	for sentence, n := range rounds {
		t.Run(sentence, func(t *testing.T) {
			forEachVersion(t, func(t *testing.T, p product) {
				live, fixed := split(p.engine.Parameters())
				settings := sampled(t, live, n)
				if n == 1 {
					settings["collation_server"] = "utf8mb4_bin"
				}
				if _, exists := settings["max_statement_time"]; exists {
					settings["max_statement_time"] = "0.010000"
				} else {
					settings["max_execution_time"] = "1"
				}
				made := p.member(filepath.Join(t.TempDir(), "data"))
				made.Files, made.LiveFiles = p.engine.Files(sampled(t, fixed, n)), p.engine.LiveFiles(settings)
				member := p.start(t, made)
				member.promote(t)
				checkPassword(t, member.operator(t, adminPassword), plan.PasswordSet)
				operator := member.operator(t, adminPassword)
				if got := answer(t, operator.db, "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'app'"); got != settings["collation_server"] {
					t.Errorf("the database's collation is %s, want %s", got, settings["collation_server"])
				}
				if p.image != "mariadb:10.11" {
					return
				}
				member.Stop()
				made.Image = "mariadb:11.8"
				newer := p.start(t, made)
				if strings.Contains(newer.Output(), "aren't those of version") {
					t.Errorf("the upgrade failed:\n%s", newer.Output())
				}
				checkPassword(t, newer.operator(t, adminPassword), plan.PasswordSet)
			})
		})
	}
}
