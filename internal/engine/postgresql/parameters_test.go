// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	var names []string
	for _, known := range New().Parameters() {
		names = append(names, known.Name)
		if read, isAllowed := known.Read(known.Default); !isAllowed || read != known.Default {
			t.Errorf("the default %q of %s is read as %q (%t)", known.Default, known.Name, read, isAllowed)
		}
		if known.Allowed == "" {
			t.Errorf("%s doesn't say what is allowed", known.Name)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("they are %v", names)
	}
}

func TestNoParameterReachesWhatIsTheOperators(t *testing.T) {
	for _, name := range []string{
		"archive_command", "autovacuum", "config_file", "data_directory", "dynamic_library_path", "fsync", "full_page_writes", "hba_file", "include",
		"listen_addresses", "log_destination", "log_min_duration_statement", "log_min_error_statement", "log_statement", "password_encryption", "port",
		"primary_conninfo", "restore_command", "session_preload_libraries", "shared_preload_libraries", "ssl", "synchronous_commit",
		"synchronous_standby_names", "unix_socket_directories", "wal_level", "wal_sync_method", "zero_damaged_pages",
	} {
		if _, isKnown := plan.FindParameter(New().Parameters(), name); isKnown {
			t.Errorf("%s is a parameter", name)
		}
	}
}

func TestAValueIsReadInTheFormOfTheServer(t *testing.T) {
	for sentence, row := range map[string]struct {
		name, value, want string
		isRefused         bool
	}{
		"memory in pages":                 {name: "shared_buffers", value: "1GB", want: "131072"},
		"memory in kilobytes":             {name: "work_mem", value: "64MB", want: "65536"},
		"memory without a unit":           {name: "work_mem", value: "65536", want: "65536"},
		"memory that is no whole page":    {name: "shared_buffers", value: "1025kB", isRefused: true},
		"a unit in small letters":         {name: "work_mem", value: "64mb", isRefused: true},
		"less memory than the server has": {name: "work_mem", value: "1kB", isRefused: true},
		"a time":                          {name: "statement_timeout", value: "5min", want: "300000"},
		"a time in days":                  {name: "statement_timeout", value: "1d", want: "86400000"},
		"no time":                         {name: "statement_timeout", value: "0", want: "0"},
		"a time that would hit us":        {name: "statement_timeout", value: "10ms", isRefused: true},
		"a word for none":                 {name: "temp_file_limit", value: "-1", want: "-1"},
		"a negative number":               {name: "temp_file_limit", value: "-2", isRefused: true},
		"a fraction":                      {name: "random_page_cost", value: "1.10", want: "1.1"},
		"a fraction with many decimals":   {name: "random_page_cost", value: "1.00001", isRefused: true},
		"a fraction with many digits":     {name: "random_page_cost", value: "1234.567", isRefused: true},
		"a fraction with an exponent":     {name: "random_page_cost", value: "1e2", isRefused: true},
		"a switch":                        {name: "jit", value: "False", want: "off"},
		"a word with a space":             {name: "default_transaction_isolation", value: "Repeatable Read", want: "repeatable read"},
		"what a standby doesn't run":      {name: "default_transaction_isolation", value: "serializable", isRefused: true},
		"a place":                         {name: "TimeZone", value: "asia/shanghai", want: "Asia/Shanghai"},
		"a place that there isn't":        {name: "TimeZone", value: "Asia/Nowhere", isRefused: true},
		"a file for a place":              {name: "TimeZone", value: "/etc/passwd", isRefused: true},
		"a second line":                   {name: "jit", value: "on\nfsync = off", isRefused: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			known, isKnown := plan.FindParameter(New().Parameters(), row.name)
			if !isKnown {
				t.Fatalf("%s is no parameter", row.name)
			}
			got, isAllowed := known.Read(row.value)
			if isAllowed == row.isRefused || isAllowed && got != row.want {
				t.Errorf("%q is read as %q (%t), want %q", row.value, got, isAllowed, row.want)
			}
		})
	}
}

func FuzzTheFilesSetWhatWasAskedFor(f *testing.F) {
	for _, seed := range []string{"", "1GB", "0.25", "-1", "read committed", "UTC", "on\nfsync = off", "'", `\`, "5min"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, known := range New().Parameters() {
			read, isAllowed := known.Read(value)
			if again, isStill := known.Read(read); isAllowed && (!isStill || again != read || strings.ContainsAny(read, "\r\n\x00")) {
				t.Errorf("%s: %q is read as %q, and that as %q", known.Name, value, read, again)
			}
		}
		live := plan.LiveDefaults(New().Parameters())
		live["work_mem"] = strings.ReplaceAll(value, "\x00", "")
		got := plan.Settings{}
		for _, line := range parse(t, New().LiveFiles(live)[liveFile]) {
			got[line.name] = line.value
		}
		if len(got.Without(live)) > 0 || len(live.Without(got)) > 0 {
			t.Errorf("%q becomes %q", value, got["work_mem"])
		}
	})
}
