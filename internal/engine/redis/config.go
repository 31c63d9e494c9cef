// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strconv"
	"strings"
)

// directive is one line of a configuration file.
type directive struct {
	name   string
	values []string
}

// config renders the configuration that comes from the spec. What a member
// decides for itself, and keeps with its data, stands in server.conf, which the
// boot script makes.
//
// maxmemory isn't set: a Redis that evicts keys, or refuses writes, by a number
// that its owner didn't choose is a surprise; the memory limit is the owner's.
func config() string {
	return render([]directive{
		{"port", []string{strconv.Itoa(Port)}},
		// All addresses of both families, the second one if there is any.
		{"bind", []string{"*", "-::*"}},
		// The accounts protect it; protected-mode looks at the default account's
		// password alone, and that account may do nothing but PING.
		{"protected-mode", []string{"no"}},
		{"daemonize", []string{"no"}},
		// Standard output, which is the container's log.
		{"logfile", []string{""}},
		{"tcp-keepalive", []string{"60"}},
		// The append-only file supersedes snapshots. A database without storage
		// has one too: its data goes with the pod, and not before.
		{"save", []string{""}},
		{"appendonly", []string{"yes"}},
		// At most one second of writes is lost if the node fails; none if only
		// the process does.
		{"appendfsync", []string{"everysec"}},
	})
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
