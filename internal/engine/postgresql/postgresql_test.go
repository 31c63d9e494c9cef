// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"flag"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/engine/boot"
	"coolops.cn/database-manager/internal/engine/filetest"
	"coolops.cn/database-manager/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheFilesOfAMemberAreThoseInTestdata(t *testing.T) {
	filetest.Golden{Dir: "testdata", IsRenewed: *update}.CheckFiles(t, New())
}

func TestAFixedParameterIsInAFileThatAMemberIsRestartedFor(t *testing.T) {
	fixed := plan.Settings{"max_connections": "500"}
	filetest.Golden{Dir: "testdata/fixed", IsRenewed: *update}.CheckFixed(t, New(), fixed, "postgresql.conf")
}

func TestTheScriptAndTheAccessFileNameTheAccountsAsTheRestDoes(t *testing.T) {
	files := New().Files(nil)
	for name, wanted := range map[string][]string{
		boot.ScriptFile: {
			"account " + AdminUsername + " admin ", "account " + ReplicationUsername + " admin ", "account " + Username + " auth ",
			"--username=" + AdminUsername + " ", `CREATE DATABASE "` + Database + `" OWNER "` + Username + `"`,
			"config_file=/boot/postgresql.conf",
		},
		accessFile: {" " + ReplicationUsername + " "},
	} {
		for _, text := range wanted {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s doesn't say %q", name, text)
			}
		}
	}
}

func TestAURIHasWhatAClientNeeds(t *testing.T) {
	if got, want := New().URI("db.ns.svc", "app", "p%40ss"), "postgresql://app:p%40ss@db.ns.svc:5432/app"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// line is a setting as PostgreSQL's guc-file.l has it: a name, an equals sign,
// and a value, which is a word, a whole number with or without a unit, or a
// string in quotes.
var line = regexp.MustCompile(`^([A-Za-z_][A-Za-z_0-9]*) = (?:([A-Za-z_\x80-\xff][A-Za-z_0-9\x80-\xff\-._:/]*|-?[0-9]+[A-Za-z]*)|'((?:[^'\\\n]|\\.|'')*)')$`)

// parse reads a configuration file as guc-file.l does.
func parse(t *testing.T, file string) []setting {
	t.Helper()
	var settings []setting
	for text := range strings.Lines(file) {
		parts := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if parts == nil {
			t.Fatalf("%q is no line of a configuration file", text)
		}
		value := parts[2]
		if value == "" {
			value = unescape(t, parts[3])
		}
		settings = append(settings, setting{parts[1], value})
	}
	return settings
}

// unescape reads the inside of a string in quotes, as DeescapeQuotedString does.
func unescape(t *testing.T, quoted string) string {
	t.Helper()
	var value strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch {
		case quoted[i] == '\'':
			value.WriteByte('\'')
			i++
		case quoted[i] == '\\' && quoted[i+1] == '\\':
			value.WriteByte('\\')
			i++
		case quoted[i] == '\\':
			char, err := strconv.ParseUint(quoted[i+1:i+4], 8, 8)
			if err != nil {
				t.Fatalf("%q has an escape of no known form", quoted)
			}
			value.WriteByte(byte(char))
			i += 3
		default:
			value.WriteByte(quoted[i])
		}
	}
	return value.String()
}

func FuzzASettingIsReadAsItWas(f *testing.F) {
	for _, seed := range []string{"", "plain", "128MB", "1e5", "5a3", "0x1f", "-1", "1.5", "two words", "'", `\`, `\'`, "line\nfsync = off", "#", "\xff", "é", "\r", "a_b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ReplaceAll(value, "\x00", "")
		got := parse(t, render([]setting{{"before", "1"}, {"asked", value}, {"after", "off"}}))
		if len(got) != 3 || got[0] != (setting{"before", "1"}) || got[1] != (setting{"asked", value}) || got[2] != (setting{"after", "off"}) {
			t.Errorf("%q is read as %q", value, got)
		}
	})
}

func TestTheConfigurationSaysWhatSafetyRestsOn(t *testing.T) {
	filetest.CheckLines(t, New(), "postgresql.conf", map[string]string{
		"a commit is on the disk, and on those of replicas": "synchronous_commit = on",
		"a password is kept as a verifier":                  "password_encryption = 'scram-sha-256'",
		"a statement that fails isn't logged":               "log_min_error_statement = panic",
		"nor any other":                                     "log_statement = none",
		"nor one that is slow":                              "log_min_duration_statement = '-1'",
	})
}
