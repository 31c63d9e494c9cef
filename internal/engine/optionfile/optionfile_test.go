// SPDX-License-Identifier: Apache-2.0

package optionfile

import (
	"strings"
	"testing"
)

func TestAFileHasAGroupAndALineForEachOption(t *testing.T) {
	got := Render("mysqld", []Option{{"port", "3306"}, {"init-connect", `SET @a = "b#c"`}})
	if want := "[mysqld]\nport=3306\ninit-connect=\"SET @a = \\\"b#c\\\"\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// read reads the value of one line as the servers do, in my_default.c: the
// comment goes, then the space around, then one pair of quotes, and what a
// backslash stands for comes last.
func read(line string) string {
	_, value, _ := strings.Cut(line[:endOfValue(line)], "=")
	value = strings.Trim(value, " \t\n\v\f\r")
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[0] == value[len(value)-1] {
		value = value[1 : len(value)-1]
	}
	var unescaped strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' || i == len(value)-1 {
			unescaped.WriteByte(value[i])
			continue
		}
		i++
		meaning, isKnown := map[byte]string{
			'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 's': " ", '"': `"`, '\'': `'`, '\\': `\`,
		}[value[i]]
		if !isKnown {
			meaning = `\` + value[i:i+1]
		}
		unescaped.WriteString(meaning)
	}
	return unescaped.String()
}

// endOfValue finds where a line's comment begins.
func endOfValue(line string) int {
	quote, isEscaped := byte(0), false
	for i := range len(line) {
		char := line[i]
		if (char == '"' || char == '\'') && !isEscaped {
			switch quote {
			case 0:
				quote = char
			case char:
				quote = 0
			}
		}
		if quote == 0 && char == '#' {
			return i
		}
		isEscaped = quote != 0 && char == '\\' && !isEscaped
	}
	return len(line)
}

func FuzzAValueIsReadAsItWas(f *testing.F) {
	for _, seed := range []string{"", "plain", "two words", ` "`, `"`, `'`, `\`, `\n`, "line\n[client]", "a#b", "a # b", "\b\t\r\v", "\xff\xa0", "é", `"a" "b"`, ";", "!include /etc"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsRune(value, 0) {
			return // No value holds a NUL.
		}
		line := strings.TrimSuffix(strings.TrimPrefix(Render("g", []Option{{"name", value}}), "[g]\n"), "\n")
		if strings.ContainsAny(line, "\n\r") {
			t.Errorf("%q spans lines", line)
		}
		if got := read(line); got != value {
			t.Errorf("%q became %q, which reads %q", value, line, got)
		}
	})
}
