// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"flag"
	"testing"

	"coolops.cn/database-manager/internal/engine/filetest"
	"coolops.cn/database-manager/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	filetest.Golden{Dir: "testdata", IsRenewed: *update}.CheckFiles(t, New())
}

func TestAFixedParameterChangesTheConfigurationAlone(t *testing.T) {
	fixed := plan.Settings{"innodb_buffer_pool_size": "3221225472"}
	filetest.Golden{Dir: "testdata/fixed", IsRenewed: *update}.CheckFixed(t, New(), fixed, "mariadb.cnf")
}

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	filetest.CheckParameters(t, New())
}

func TestNoParameterIsWhatTheOperatorSets(t *testing.T) {
	filetest.CheckOptions(t, New(), "mariadb.cnf")
}

func FuzzAnyValueIsReadInOneForm(f *testing.F) {
	for _, seed := range []string{"", "ON", "1G", "0.5", "-1", "READ-COMMITTED", "+08:00", "ANSI_QUOTES,IGNORE_SPACE", "on\nskip-grant-tables", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) { filetest.CheckAnyValue(t, New(), value) })
}

func TestTheConfigurationSaysWhatSafetyRestsOn(t *testing.T) {
	filetest.CheckLines(t, New(), "mariadb.cnf", map[string]string{
		"no member takes writes before it is promoted": "read-only=ON",
		"a commit is on the disk":                      "innodb-flush-log-at-trx-commit=1",
		"and in the log that replicas get":             "sync-binlog=1",
		"what was received is on the disk":             "sync-relay-log=1",
		"and isn't thrown away at a restart":           "relay-log-recovery=OFF",
		"a fence holds after a restart":                "skip-slave-start=ON",
		"no history goes on in two ways":               "gtid-strict-mode=ON",
		"a commit waits for as long as it takes":       "rpl-semi-sync-master-timeout=18446744073709551615",
		"also for the first replica":                   "rpl-semi-sync-master-wait-no-slave=ON",
		"and nobody sees it before":                    "rpl-semi-sync-master-wait-point=AFTER_SYNC",
	})
}
