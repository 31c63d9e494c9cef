// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/engine/filetest"
	"coolops.cn/database-manager/internal/plan"
)

func TestParametersAreOrderedAndTheirDefaultsAreAllowed(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		filetest.CheckParameters(t, engine)
	}
}

func TestNoParameterReachesWhatIsTheOperators(t *testing.T) {
	for _, engine := range []Engine{New(), NewValkey()} {
		filetest.CheckOutOfReach(t, engine,
			"aclfile", "appendonly", "bind", "daemonize", "dbfilename", "dir", "enable-debug-command", "enable-module-command", "enable-protected-configs",
			"include", "loadmodule", "logfile", "masterauth", "masteruser", "min-replicas-to-write", "no-appendfsync-on-rewrite", "port", "protected-mode",
			"rename-command", "replicaof", "repl-backlog-size", "requirepass", "save", "shutdown-timeout", "syslog-enabled", "tls-port", "unixsocket", "user",
		)
	}
}

func TestAValueIsReadInTheFormOfTheServer(t *testing.T) {
	filetest.CheckReadings(t, New(), map[string]filetest.Reading{
		"a size with a unit":                {Name: "maxmemory", Value: "2GB", Want: "2147483648"},
		"a size with a decimal unit":        {Name: "maxmemory", Value: "2m", Want: "2000000"},
		"a size without a unit":             {Name: "maxmemory", Value: "100", Want: "100"},
		"a size with an unknown unit":       {Name: "maxmemory", Value: "1tb", IsRefused: true},
		"a share of the memory":             {Name: "maxmemory", Value: "10%", IsRefused: true},
		"a word in capitals":                {Name: "maxmemory-policy", Value: "AllKeys-LRU", Want: "allkeys-lru"},
		"a word that isn't one":             {Name: "maxmemory-policy", Value: "lru", IsRefused: true},
		"a switch":                          {Name: "activerehashing", Value: "on", Want: "yes"},
		"a zero, where less than ten isn't": {Name: "timeout", Value: "0", Want: "0"},
		"a file that is written sometime":   {Name: "appendfsync", Value: "no", IsRefused: true},
		"a nine, where less than ten isn't": {Name: "timeout", Value: "9", IsRefused: true},
		"no events":                         {Name: "notify-keyspace-events", Value: "", Want: ""},
		"some events":                       {Name: "notify-keyspace-events", Value: "KEx$", Want: "$xKE"},
		"all events":                        {Name: "notify-keyspace-events", Value: "KEA", Want: "AKE"},
		"all events, one by one":            {Name: "notify-keyspace-events", Value: "dtexzhsl$gE", Want: "AE"},
		"an unknown event":                  {Name: "notify-keyspace-events", Value: "KEAn", IsRefused: true},
		"less than durable":                 {Name: "appendfsync", Value: "no", IsRefused: true},
		"a second line":                     {Name: "maxmemory-policy", Value: "noeviction\nsave 1 1", IsRefused: true},
		"too few connections":               {Name: "maxclients", Value: "10", IsRefused: true},
	})
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
			filetest.CheckAnyValue(t, engine, value)
			filetest.CheckLiveFile(t, engine, "maxmemory-policy", value, func(file string) plan.Settings { return parse(t, file) })
		}
	})
}
