// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/engine/filetest"
	"coolops.cn/database-manager/internal/plan"
)

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	filetest.CheckParameters(t, New())
}

func TestNoParameterReachesWhatIsTheOperators(t *testing.T) {
	filetest.CheckOutOfReach(t, New(),
		"archive_command", "autovacuum", "config_file", "data_directory", "dynamic_library_path", "fsync", "full_page_writes", "hba_file", "include",
		"listen_addresses", "log_destination", "log_min_duration_statement", "log_min_error_statement", "log_statement", "password_encryption", "port",
		"primary_conninfo", "restore_command", "session_preload_libraries", "shared_preload_libraries", "ssl", "synchronous_commit",
		"synchronous_standby_names", "unix_socket_directories", "wal_level", "wal_sync_method", "zero_damaged_pages",
	)
}

func TestAValueIsReadInTheFormOfTheServer(t *testing.T) {
	filetest.CheckReadings(t, New(), map[string]filetest.Reading{
		"memory in pages":                 {Name: "shared_buffers", Value: "1GB", Want: "131072"},
		"memory in kilobytes":             {Name: "work_mem", Value: "64MB", Want: "65536"},
		"memory without a unit":           {Name: "work_mem", Value: "65536", Want: "65536"},
		"memory that is no whole page":    {Name: "shared_buffers", Value: "1025kB", IsRefused: true},
		"a unit in small letters":         {Name: "work_mem", Value: "64mb", IsRefused: true},
		"less memory than the server has": {Name: "work_mem", Value: "1kB", IsRefused: true},
		"a time":                          {Name: "statement_timeout", Value: "5min", Want: "300000"},
		"a time in days":                  {Name: "statement_timeout", Value: "1d", Want: "86400000"},
		"no time":                         {Name: "statement_timeout", Value: "0", Want: "0"},
		"a time that would hit us":        {Name: "statement_timeout", Value: "10ms", IsRefused: true},
		"a word for none":                 {Name: "temp_file_limit", Value: "-1", Want: "-1"},
		"a negative number":               {Name: "temp_file_limit", Value: "-2", IsRefused: true},
		"a fraction":                      {Name: "random_page_cost", Value: "1.10", Want: "1.1"},
		"a fraction with many decimals":   {Name: "random_page_cost", Value: "1.00001", IsRefused: true},
		"a fraction with many digits":     {Name: "random_page_cost", Value: "1234.567", IsRefused: true},
		"a fraction with an exponent":     {Name: "random_page_cost", Value: "1e2", IsRefused: true},
		"a switch":                        {Name: "jit", Value: "False", Want: "off"},
		"a word with a space":             {Name: "default_transaction_isolation", Value: "Repeatable Read", Want: "repeatable read"},
		"what a standby doesn't run":      {Name: "default_transaction_isolation", Value: "serializable", IsRefused: true},
		"a place":                         {Name: "TimeZone", Value: "asia/shanghai", Want: "Asia/Shanghai"},
		"a place that there isn't":        {Name: "TimeZone", Value: "Asia/Nowhere", IsRefused: true},
		"a file for a place":              {Name: "TimeZone", Value: "/etc/passwd", IsRefused: true},
		"a second line":                   {Name: "jit", Value: "on\nfsync = off", IsRefused: true},
	})
}

func FuzzTheFilesSetWhatWasAskedFor(f *testing.F) {
	for _, seed := range []string{"", "1GB", "0.25", "-1", "read committed", "UTC", "on\nfsync = off", "'", `\`, "5min"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		filetest.CheckAnyValue(t, New(), value)
		filetest.CheckLiveFile(t, New(), "work_mem", strings.ReplaceAll(value, "\x00", ""), func(file string) plan.Settings {
			got := plan.Settings{}
			for _, line := range parse(t, file) {
				got[line.name] = line.value
			}
			return got
		})
	})
}
