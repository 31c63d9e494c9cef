// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"strings"
	"testing"
)

func TestLinesMatch(t *testing.T) {
	for sentence, row := range map[string]struct {
		expected, printed string
		want              bool
	}{
		"the same":                                   {"pod/a created", "pod/a created", true},
		"another":                                    {"pod/a created", "pod/b created", false},
		"a part isn't enough":                        {"pod/a", "pod/a created", false},
		"columns may be wider":                       {"NAME  AGE", "NAME     AGE  ", true},
		"blanks at the beginning don't count":        {"  a", "a", true},
		"a blank isn't none":                         {"a b", "ab", false},
		"an ellipsis at the end":                     {"pod/a …", "pod/a created", true},
		"an ellipsis at the beginning":               {"… created", "pod/a created", true},
		"an ellipsis in the middle":                  {"pod/a-… created", "pod/a-x7k2p created", true},
		"an ellipsis may be nothing":                 {"pod/a…", "pod/a", true},
		"several":                                    {"…a…b…", "xaybz", true},
		"several in their order only":                {"…a…b…", "xbya", false},
		"what is before it has to be there":          {"pod/…", "service/a", false},
		"what is after it has to be there":           {"…created", "created a", false},
		"one text doesn't stand for two":             {"ab…bc", "abc", false},
		"signs of patterns are text":                 {"a.*b [c]", "a.*b [c]", true},
		"signs of patterns are text, and no pattern": {"a.*b", "axb", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := matches(row.expected, row.printed); got != row.want {
				t.Errorf("%q matches %q: %t", row.expected, row.printed, got)
			}
		})
	}
}

func TestExpectationsAreMet(t *testing.T) {
	for sentence, row := range map[string]struct {
		expect, foreground, background string
		want                           int
	}{
		"in their order":                                 {"a b c", "a b c", "", 3},
		"with others between them":                       {"a c", "x a b c y", "", 2},
		"not in another order":                           {"b a", "a b", "", 1},
		"one line isn't two":                             {"a a", "a", "", 1},
		"nothing is asked for":                           {"", "a", "", 0},
		"nothing is printed":                             {"a", "", "", 0},
		"the background prints as it likes":              {"a x b y", "a b", "x y", 4},
		"in whatever order":                              {"x y a b", "a b", "x y", 4},
		"but in its own":                                 {"a y x", "a", "x y", 2},
		"both print the same line":                       {"a a b", "a b", "a", 3},
		"the same line of the other is the one needed":   {"a x", "a", "a x", 2},
		"both ways are kept open until one is the right": {"a a x y", "a x", "a y", 4},
		"what neither can give isn't met":                {"a a a", "a", "a", 2},
		"an ellipsis isn't greedy":                       {"… b", "a b", "", 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			var expectations []Expectation
			for text := range strings.FieldsSeq(row.expect) {
				expectations = append(expectations, Expectation{Text: text})
			}
			p := printed{foreground: strings.Fields(row.foreground), background: strings.Fields(row.background)}
			if got := p.met(expectations); got != row.want {
				t.Errorf("%d are met, not %d", got, row.want)
			}
		})
	}
}
