// SPDX-License-Identifier: Apache-2.0

package mysql

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
	filetest.Golden{Dir: "testdata/fixed", IsRenewed: *update}.CheckFixed(t, New(), fixed, "mysql.cnf")
}

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	filetest.CheckParameters(t, New())
}

func TestNoParameterIsWhatTheOperatorSets(t *testing.T) { filetest.CheckOptions(t, New(), "mysql.cnf") }

func FuzzAnyValueIsReadInOneForm(f *testing.F) {
	for _, seed := range []string{"", "ON", "1G", "0.5", "-1", "READ-COMMITTED", "+08:00", "ANSI_QUOTES,IGNORE_SPACE", "on\nskip-grant-tables", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) { filetest.CheckAnyValue(t, New(), value) })
}

func TestTheConfigurationSaysWhatSafetyRestsOn(t *testing.T) {
	filetest.CheckLines(t, New(), "mysql.cnf", map[string]string{
		"no member takes writes before it is promoted":         "read-only=ON",
		"nor does an administrator's account":                  "super-read-only=ON",
		"a commit is on the disk":                              "innodb-flush-log-at-trx-commit=1",
		"and in the log that replicas get":                     "sync-binlog=1",
		"what was received is on the disk":                     "sync-relay-log=1",
		"and is executed after a restart, not asked for again": "relay-log-recovery=OFF",
		"a fence holds after a restart":                        "skip-replica-start=ON",
		"a commit waits for as long as it takes":               "loose-rpl-semi-sync-source-timeout=18446744073709551615",
		"also for the first replica":                           "loose-rpl-semi-sync-source-wait-no-replica=ON",
		"and nobody sees it before":                            "loose-rpl-semi-sync-source-wait-point=AFTER_SYNC",
		"no file is read or written by SQL":                    "secure-file-priv=NULL",
	})
}
