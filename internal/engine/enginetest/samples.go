//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

// bounds are at the end of what a parameter allows.
var bounds = regexp.MustCompile(`(\S+) to (\S+)$`)

// Samples returns values of a parameter, in the form of the server: its default,
// and what its description says is allowed, which is the least and the greatest
// number, or each of the words. It fails the test if one of them isn't allowed
// after all, or if there is none but the default.
func Samples(t testing.TB, known plan.Parameter) []string {
	t.Helper()
	var named []string
	rest := known.Allowed
	if before, after, hasWord := strings.Cut(rest, ", or "); hasWord {
		named, rest = append(named, before), after
	}
	if words, isList := strings.CutPrefix(rest, "one of "); isList {
		named = append(named, strings.Split(words, ", ")...)
	}
	if rest == "on or off" {
		named = append(named, "on", "off")
	}
	if ends := bounds.FindStringSubmatch(rest); ends != nil {
		named = append(named, ends[1:]...)
	}
	if len(named) == 0 {
		t.Errorf("%s: nothing is known to be allowed of %q", known.Name, known.Allowed)
	}
	samples := []string{known.Default}
	for _, value := range named {
		read, isAllowed := known.Read(value)
		if !isAllowed {
			t.Errorf("%s: %q isn't allowed, and should be by %q", known.Name, value, known.Allowed)
		}
		if !slices.Contains(samples, read) {
			samples = append(samples, read)
		}
	}
	return samples
}
