//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
)

func TestTheServerKnowsEachTimeZoneByItsName(t *testing.T) {
	for _, version := range New().Versions() {
		image, _ := New().Image(version)
		running := enginetest.Start(t, enginetest.Member{
			Image: image, Files: New().Files(nil), LiveFiles: New().LiveFiles(plan.LiveDefaults(New().Parameters())), Command: New().Command(),
			AuthPassword: "app", AdminPassword: "admin", Env: map[string]string{plan.TopologyStateVariable: string(plan.TopologyNew)},
		})
		running.WaitFor(New().Probe()...)
		query := "SELECT zone FROM unnest('{" + strings.Join(strings.Fields(zones), ",") + "}'::text[]) zone WHERE set_config('TimeZone', zone, false) <> zone"
		got, err := running.Exec(t.Context(), "", "/bin/sh", "-c", `PGPASSWORD=admin exec psql -h 127.0.0.1 -U operator -Atc "$1" postgres`, "-", query)
		if err != nil || got != "" {
			t.Errorf("%s: not by their names: %s (%v)", version, got, err)
		}
	}
}

func TestTheServerReadsASettingAsItWas(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	values := []string{"", "plain", "128MB", "1e5", "5a3", "0x1f", "-1", "two words", "'", "''", `\`, `\'`, `\n`, "line\nport = 1", "#", "é", "\r", "a_b", "\x01\x7f", "\xff"}
	for range 20 {
		value := make([]rune, random.IntN(20))
		for i := range value {
			value[i] = 1 + random.Int32N([]rune{127, unicode.MaxRune}[i%2])
		}
		values = append(values, string(value))
	}
	for _, version := range New().Versions() {
		image, _ := New().Image(version)
		files := map[string]string{}
		for i, value := range values {
			files[strconv.Itoa(i)] = render([]setting{{"port", "7"}, {"log_line_prefix", value}, {"max_connections", "7"}})
		}
		running := enginetest.Start(t, enginetest.Member{
			Image: image, Files: files, Command: []string{"/bin/sh", "-c", ": >/data/postgresql.auto.conf; sleep 1000"},
		})
		running.WaitFor("test", "-e", "/data/postgresql.auto.conf")
		for i, value := range values {
			for name, want := range map[string]string{"log_line_prefix": value, "port": "7", "max_connections": "7"} {
				got, err := running.Exec(t.Context(), "", "postgres", "-C", name, "-D", "/data", "-c", "config_file=/boot/"+strconv.Itoa(i))
				if err != nil || got != want+"\n" {
					t.Errorf("%s: with the prefix %q %s is %q (%v)", version, value, name, got, err)
				}
			}
		}
	}
}
