// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// directive is one line of a configuration file.
type directive struct {
	name   string
	values []string
}

// config renders the configuration that a member is restarted for, with the
// parameters that aren't live. What a member decides for itself, and keeps with
// its data, stands in server.conf, which the boot script makes. CONFIG REWRITE
// writes much else into it, too, so that each parameter has a line here, whether
// the spec sets it or not.
func config(fixed plan.Settings) string {
	return render(slices.Concat([]directive{
		{"port", []string{strconv.Itoa(Port)}},
		// All addresses of both families, the second one if there is any.
		{"bind", []string{"*", "-::*"}},
		// The accounts protect it; protected-mode looks at the default account's
		// password alone, and that account may do nothing but PING.
		{"protected-mode", []string{"no"}},
		{"daemonize", []string{"no"}},
		// Standard output, which is the container's log.
		{"logfile", []string{""}},
		// The append-only file supersedes snapshots. A database without storage
		// has one too: its data goes with the pod, and not before.
		{"save", []string{""}},
		{"appendonly", []string{"yes"}},
	}, replication(), directives(fixed)))
}

// replication is how members copy from each other, as far as the operator doesn't
// decide it while they run: that is the source and min-replicas-to-write.
func replication() []directive {
	return []directive{
		// A replica serves reads while it is connected to its source, and at no other
		// time: neither before it has the data, nor when they may be old.
		{"replica-serve-stale-data", []string{"no"}},
		{"replica-read-only", []string{"yes"}},
		// What a write must be confirmed by, where the primary waits at all: replicas
		// that were heard of within so many seconds. They speak up once a second.
		{"min-replicas-max-lag", []string{"5"}},
		// A silence of so many seconds ends a connection, such as one to a pod that is
		// gone without a word.
		{"repl-ping-replica-period", []string{"1"}},
		{"repl-timeout", []string{"15"}},
		{"repl-diskless-sync-delay", []string{"0"}},
		// For replicas that were away for a moment.
		{"repl-backlog-size", []string{"16777216"}},
		// A primary that has no replica for long would forget its history, and nobody
		// could tell any more how far the others are.
		{"repl-backlog-ttl", []string{"0"}},
	}
}

func render(directives []directive) string {
	var file strings.Builder
	for _, line := range directives {
		file.WriteString(line.name)
		for _, value := range line.values {
			file.WriteString(" " + quote(value))
		}
		file.WriteString("\n")
	}
	return file.String()
}

// quote writes a value so that Redis reads exactly it, whatever it holds: in
// double quotes, where \xNN stands for a byte. A value that needs no quotes
// stays as it is, for the reader's sake.
func quote(value string) string {
	if value != "" && !strings.ContainsFunc(value, needsQuote) {
		return value
	}
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, char := range []byte(value) {
		switch {
		case char == '"' || char == '\\':
			quoted.WriteByte('\\')
			quoted.WriteByte(char)
		case char < ' ' || char > '~':
			const digits = "0123456789abcdef"
			quoted.WriteString(`\x`)
			quoted.WriteByte(digits[char>>4])
			quoted.WriteByte(digits[char&0xf])
		default:
			quoted.WriteByte(char)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}

func needsQuote(char rune) bool {
	return char <= ' ' || char > '~' || strings.ContainsRune(`"'\#`, char)
}
