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
