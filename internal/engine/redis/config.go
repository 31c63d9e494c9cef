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
	}, directives(fixed)))
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
