// SPDX-License-Identifier: Apache-2.0

// Package optionfile writes the option files that MySQL and MariaDB read.
package optionfile

import "strings"

// Option is one option of a server, and the value that it gets. A value holds
// no NUL, which the servers' strings can't hold, and is shorter than a line may
// be, 4095 bytes: what is longer is read as several lines.
type Option struct{ Name, Value string }

// Render writes the options as one group, such as "mysqld".
func Render(group string, options []Option) string {
	var file strings.Builder
	file.WriteString("[" + group + "]\n")
	for _, option := range options {
		file.WriteString(option.Name + "=" + quote(option.Value) + "\n")
	}
	return file.String()
}

// quote writes a value so that the server reads exactly it: in double quotes,
// where a backslash has a meaning, and a # begins no comment. A value that needs
// no quotes stays as it is, for the reader's sake.
func quote(value string) string {
	if !strings.ContainsFunc(value, needsQuote) {
		return value
	}
	return `"` + strings.NewReplacer(
		`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`,
	).Replace(value) + `"`
}

func needsQuote(char rune) bool {
	return char <= ' ' || char > '~' || strings.ContainsRune(`"'\#`, char)
}
