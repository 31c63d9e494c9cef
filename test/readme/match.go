// SPDX-License-Identifier: Apache-2.0

package readme

import "strings"

// matches tells whether a printed line is the one that is expected. An ellipsis stands for any text, and any number of
// blanks for any other number: columns are as wide as what is in them.
func matches(expected, printed string) bool {
	parts := strings.Split(oneBlank(expected), "…")
	printed = oneBlank(printed)
	if len(parts) == 1 {
		return printed == parts[0]
	}
	rest, ok := strings.CutPrefix(printed, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}

func oneBlank(line string) string { return strings.Join(strings.Fields(line), " ") }

// printed are the lines that came since a command began.
type printed struct {
	// foreground is what the commands printed that the shell waited for, background what the others did.
	foreground, background []string
}

// met counts the expectations, from the first on, that are met: those by one of the two in its order, those by the other
// in its own.
func (p printed) met(expectations []Expectation) int {
	// position is how many lines have been used. Usually there is one; there are more while both have printed a line.
	type position struct{ foreground, background int }
	positions := map[position]bool{{}: true}
	for count, expectation := range expectations {
		next := map[position]bool{}
		for from := range positions {
			if skip := firstMatch(expectation.Text, p.foreground[from.foreground:]); skip > 0 {
				next[position{from.foreground + skip, from.background}] = true
			}
			if skip := firstMatch(expectation.Text, p.background[from.background:]); skip > 0 {
				next[position{from.foreground, from.background + skip}] = true
			}
		}
		if len(next) == 0 {
			return count
		}
		positions = next
	}
	return len(expectations)
}

// firstMatch is the number of lines up to the first that matches, and with it; 0 when none does.
func firstMatch(expected string, lines []string) int {
	for index, line := range lines {
		if matches(expected, line) {
			return index + 1
		}
	}
	return 0
}
