// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		var names []string
		for _, known := range engine.Parameters() {
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
}

func TestNoParameterReachesWhatIsTheOperators(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		for _, name := range []string{
			"aclfile", "appendonly", "bind", "daemonize", "dbfilename", "dir", "enable-debug-command", "enable-module-command", "enable-protected-configs",
			"include", "loadmodule", "logfile", "masterauth", "masteruser", "min-replicas-to-write", "no-appendfsync-on-rewrite", "port", "protected-mode",
			"rename-command", "replicaof", "repl-backlog-size", "requirepass", "save", "shutdown-timeout", "syslog-enabled", "tls-port", "unixsocket", "user",
		} {
			if _, isKnown := plan.FindParameter(engine.Parameters(), name); isKnown {
				t.Errorf("%s is a parameter", name)
			}
		}
	}
}

func TestAValueIsReadInTheFormOfTheServer(t *testing.T) {
	for sentence, row := range map[string]struct {
		name, value, want string
		isRefused         bool
	}{
		"a size with a unit":                {name: "maxmemory", value: "2GB", want: "2147483648"},
		"a size with a decimal unit":        {name: "maxmemory", value: "2m", want: "2000000"},
		"a size without a unit":             {name: "maxmemory", value: "100", want: "100"},
		"a size with an unknown unit":       {name: "maxmemory", value: "1tb", isRefused: true},
		"a share of the memory":             {name: "maxmemory", value: "10%", isRefused: true},
		"a word in capitals":                {name: "maxmemory-policy", value: "AllKeys-LRU", want: "allkeys-lru"},
		"a word that isn't one":             {name: "maxmemory-policy", value: "lru", isRefused: true},
		"a switch":                          {name: "activerehashing", value: "on", want: "yes"},
		"a zero, where less than ten isn't": {name: "timeout", value: "0", want: "0"},
		"a nine, where less than ten isn't": {name: "timeout", value: "9", isRefused: true},
		"no events":                         {name: "notify-keyspace-events", value: "", want: ""},
		"some events":                       {name: "notify-keyspace-events", value: "KEx$", want: "$xKE"},
		"all events":                        {name: "notify-keyspace-events", value: "KEA", want: "AKE"},
		"all events, one by one":            {name: "notify-keyspace-events", value: "dtexzhsl$gE", want: "AE"},
		"an unknown event":                  {name: "notify-keyspace-events", value: "KEAn", isRefused: true},
		"less than durable":                 {name: "appendfsync", value: "no", isRefused: true},
		"a second line":                     {name: "maxmemory-policy", value: "noeviction\nsave 1 1", isRefused: true},
		"too few connections":               {name: "maxclients", value: "10", isRefused: true},
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

// parse reads a configuration file in which each line has one value.
func parse(t *testing.T, file string) plan.Settings {
	t.Helper()
	settings := plan.Settings{}
	for line := range strings.Lines(file) {
		name, quoted, hasValue := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, exists := settings[name]; exists || !hasValue {
			t.Fatalf("%q is no line of this file", line)
		}
		settings[name] = unquote(t, quoted)
	}
	return settings
}

func FuzzTheFilesSetWhatWasAskedFor(f *testing.F) {
	for _, seed := range []string{"", "1gb", "KEA", "allkeys-lru", "a\nsave 1 1", `"`, `\`, "\x00", "two words"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, engine := range []Engine{New(), NewValkey()} {
			for _, known := range engine.Parameters() {
				read, isAllowed := known.Read(value)
				if again, isStill := known.Read(read); isAllowed && (!isStill || again != read || strings.ContainsAny(read, "\r\n\x00")) {
					t.Errorf("%s: %q is read as %q, and that as %q", known.Name, value, read, again)
				}
			}
			live := plan.LiveDefaults(engine.Parameters())
			live["maxmemory-policy"] = value
			if got := parse(t, engine.LiveFiles(live)[liveFile]); len(got.Without(live)) > 0 || len(live.Without(got)) > 0 {
				t.Errorf("%q becomes %q", value, got["maxmemory-policy"])
			}
		}
	})
}
