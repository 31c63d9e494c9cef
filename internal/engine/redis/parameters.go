// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"coolops.cn/database-manager/internal/engine/parameter"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// liveFile sets the parameters that are live.
const liveFile = "live.conf"

// Bounds that several parameters share: where the server has none but that of
// its integers, what is certain to fit, and a day.
const (
	many = math.MaxInt32
	day  = 24 * 60 * 60
)

// Parameters are what spec.config may set: what every version of the engine has,
// and what says nothing of replication, the accounts, the network, the files or
// the container's end.
func (e Engine) Parameters() []plan.Parameter {
	lazy := "no"
	if e.Type() == v1alpha1.DatabaseTypeValkey {
		lazy = "yes"
	}
	parameters := slices.Concat(e.fixedParameters(), memoryParameters(), encodingParameters(), serviceParameters(), fileParameters(), []plan.Parameter{
		live("lazyfree-lazy-eviction", lazy, yesOrNo()),
		live("lazyfree-lazy-expire", lazy, yesOrNo()),
		live("lazyfree-lazy-server-del", lazy, yesOrNo()),
		live("lazyfree-lazy-user-del", lazy, yesOrNo()),
		live("lazyfree-lazy-user-flush", lazy, yesOrNo()),
	})
	slices.SortFunc(parameters, func(a, b plan.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return parameters
}

// fixedParameters need another start. The number of databases isn't for the spec:
// a server with fewer than before reads the keys of those that are gone into
// another one.
func (Engine) fixedParameters() []plan.Parameter {
	return []plan.Parameter{
		fixed("io-threads", "1", parameter.Integer(1, 32)),
		fixed("tcp-backlog", "511", parameter.Integer(1, 65535)),
	}
}

// memoryParameters say how much memory there is for data, and what goes when
// that isn't enough.
func memoryParameters() []plan.Parameter {
	return []plan.Parameter{
		live("active-expire-effort", "1", parameter.Integer(1, 10)),
		live("activerehashing", "yes", yesOrNo()),
		live("lfu-decay-time", "1", parameter.Integer(0, many)),
		live("lfu-log-factor", "10", parameter.Integer(0, many)),
		// A Redis that evicts keys, or refuses writes, by a number that its owner
		// didn't choose is a surprise; the memory limit is the owner's.
		live("maxmemory", "0", size("0", "16384gb")),
		live("maxmemory-eviction-tenacity", "10", parameter.Integer(0, 100)),
		live("maxmemory-policy", "noeviction", parameter.OneOf("noeviction",
			"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")),
		live("maxmemory-samples", "5", parameter.Integer(1, 64)),
		live("tracking-table-max-keys", "1000000", parameter.Integer(0, many)),
	}
}

// encodingParameters say up to what size a value is kept in the form that needs
// less memory.
func encodingParameters() []plan.Parameter {
	return []plan.Parameter{
		live("hash-max-listpack-entries", "512", parameter.Integer(0, many)),
		live("hash-max-listpack-value", "64", parameter.Integer(0, many)),
		live("hll-sparse-max-bytes", "3000", size("0", "16000")),
		live("list-compress-depth", "0", parameter.Integer(0, 65535)),
		live("list-max-listpack-size", "-2", parameter.Integer(-5, 32767)),
		live("set-max-intset-entries", "512", parameter.Integer(0, many)),
		live("stream-node-max-bytes", "4096", size("0", "1gb")),
		live("stream-node-max-entries", "100", parameter.Integer(0, many)),
		live("zset-max-listpack-entries", "128", parameter.Integer(0, many)),
		live("zset-max-listpack-value", "64", parameter.Integer(0, many)),
	}
}

// serviceParameters say what clients get.
func serviceParameters() []plan.Parameter {
	return []plan.Parameter{
		live("busy-reply-threshold", "5000", parameter.Integer(0, many)),
		live("client-query-buffer-limit", "1gb", size("1mb", "16gb")),
		live("hz", "10", parameter.Integer(1, 500)),
		live("latency-monitor-threshold", "0", parameter.Integer(0, many)),
		live("latency-tracking", "yes", yesOrNo()),
		live("loglevel", "notice", parameter.OneOf("verbose", "notice", "warning")),
		// The operator needs a connection, too. What the node's limit of open files
		// doesn't allow is refused.
		live("maxclients", "10000", parameter.Integer(100, 65000)),
		live("notify-keyspace-events", "", keyspaceEvents()),
		live("proto-max-bulk-len", "512mb", size("1mb", "16gb")),
		// The log is in memory, and for the operator's account alone.
		live("slowlog-log-slower-than", "10000", parameter.Integer(-1, many)),
		live("slowlog-max-len", "128", parameter.Integer(0, many)),
		live("tcp-keepalive", "60", parameter.Integer(0, day)),
		// The operator asks every two seconds, and its connection shouldn't go
		// between two questions.
		live("timeout", "0", orElse("0", parameter.Integer(10, 365*day))),
	}
}

// fileParameters say how the append-only file is written. None of them weakens
// what a client may rely on, which is that a write is on the disk within a
// second.
func fileParameters() []plan.Parameter {
	return []plan.Parameter{
		live("appendfsync", "everysec", parameter.OneOf("everysec", "always")),
		live("auto-aof-rewrite-min-size", "64mb", size("1mb", "1024gb")),
		live("auto-aof-rewrite-percentage", "100", parameter.Integer(10, 10000)),
		live("rdbcompression", "yes", yesOrNo()),
	}
}

// live and fixed return a parameter with a default that may have a unit.
func live(name, usual string, values plan.Values) plan.Parameter {
	known := fixed(name, usual, values)
	known.IsLive = true
	return known
}

func fixed(name, usual string, values plan.Values) plan.Parameter {
	read, isAllowed := values.Read(usual)
	if !isAllowed {
		read = usual // which a test finds
	}
	return plan.Parameter{Name: name, Default: read, Values: values}
}

func yesOrNo() plan.Values { return parameter.Switch("yes", "no") }

// size is a number of bytes.
func size(least, most string) plan.Values {
	return parameter.Quantity([]parameter.Unit{
		{Name: "b", Size: 1},
		{Name: "k", Size: 1000},
		{Name: "kb", Size: 1 << 10},
		{Name: "m", Size: 1000 * 1000},
		{Name: "mb", Size: 1 << 20},
		{Name: "g", Size: 1000 * 1000 * 1000},
		{Name: "gb", Size: 1 << 30},
	}, 1, true, least, most)
}

// orElse is one word, or one of the values.
func orElse(word string, values plan.Values) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("%s, or %s", word, values.Allowed),
		Read: func(value string) (string, bool) {
			if value == word {
				return word, true
			}
			return values.Read(value)
		},
	}
}

// The letters of notify-keyspace-events, in the order in which the server shows
// them. "A" stands for all classes. "n", for keys that are new, is none here: not
// every version shows it beside an "A".
const (
	eventClasses = "g$lshzxetd"
	eventOthers  = "KEm"
)

// keyspaceEvents is a set of letters.
func keyspaceEvents() plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("some of the letters of A%s%s", eventClasses, eventOthers),
		Read: func(value string) (string, bool) {
			if strings.Trim(value, "A"+eventClasses+eventOthers) != "" {
				return "", false
			}
			classes := among(eventClasses, value)
			if classes == eventClasses || strings.Contains(value, "A") {
				classes = "A"
			}
			return classes + among(eventOthers, value), true
		},
	}
}

// among returns the letters that a value has, in their order.
func among(letters, value string) string {
	return strings.Map(func(letter rune) rune {
		if strings.ContainsRune(value, letter) {
			return letter
		}
		return -1
	}, letters)
}

// LiveFiles returns the file that the boot script has the server include.
func (Engine) LiveFiles(live plan.Settings) map[string]string {
	return map[string]string{liveFile: render(directives(live))}
}

// directives are those that set parameters, in the order of their names.
func directives(settings plan.Settings) []directive {
	var lines []directive
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lines = append(lines, directive{name, []string{settings[name]}})
	}
	return lines
}
