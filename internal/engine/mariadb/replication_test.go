// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

func TestTwoPositionsAreCompared(t *testing.T) {
	for sentence, row := range map[string]struct {
		a, b string
		want plan.Order
	}{
		"neither has anything":                                     {"/", "/", plan.OrderSame},
		"one has nothing":                                          {"/", "0-1-5/", plan.OrderBehind},
		"both have the same":                                       {"0-1-5/", "0-1-5/", plan.OrderSame},
		"one has received what the other has executed":             {"0-1-3/0-1-5", "0-1-5/", plan.OrderSame},
		"one remembers that it received what it executed":          {"0-1-5/0-1-5", "0-1-5/", plan.OrderSame},
		"one was told of less at its start than it has":            {"0-1-5/0-1-3", "0-1-5/", plan.OrderSame},
		"one has received more":                                    {"0-1-3/0-1-9", "0-1-5/", plan.OrderAhead},
		"one has executed more":                                    {"0-1-9/", "0-1-5/0-1-8", plan.OrderAhead},
		"numbers aren't compared as texts":                         {"0-1-9/", "0-1-10/", plan.OrderBehind},
		"a former primary has no more than what was copied":        {"0-1-100/", "0-1-100,0-2-103/", plan.OrderBehind},
		"a former primary has a transaction more, as new as any":   {"0-1-101/", "0-1-100,0-2-101/", plan.OrderApart},
		"a former primary has a transaction more, older than some": {"0-1-101/", "0-1-100,0-2-103/", plan.OrderApart},
		"a former primary has more, and the new one wrote nothing": {"0-1-101/", "0-1-100/0-1-100", plan.OrderAhead},
		"a former primary has many more than the new one":          {"0-1-150/", "0-1-100,0-2-103/", plan.OrderApart},
		"one is behind by a change of the primary":                 {"0-1-90/", "0-1-100,0-2-103/", plan.OrderBehind},
		"the last one knows no history before it":                  {"0-1-90/", "0-2-103/", plan.OrderApart},
		"what was received may be of another server in between":    {"0-1-100/0-2-110", "0-1-105/", plan.OrderUnknown},
		"what was received begins where the other ends":            {"0-1-100/0-2-110", "0-1-100/", plan.OrderAhead},
		"what was received ends in another transaction":            {"0-1-100/0-2-110", "0-1-110/", plan.OrderApart},
		"a position that isn't known":                              {"", "0-1-5/", plan.OrderUnknown},
		"another domain":                                           {"1-1-5/", "0-1-5/", plan.OrderUnknown},
		"a second domain":                                          {"0-1-5,1-1-5/", "0-1-5/", plan.OrderUnknown},
		"two transactions with one number":                         {"0-1-5,0-2-5/", "0-1-5/", plan.OrderUnknown},
		"one server twice":                                         {"0-1-5,0-1-6/", "0-1-5/", plan.OrderUnknown},
		"no number":                                                {"0-1/", "0-1-5/", plan.OrderUnknown},
		"the number 0":                                             {"0-1-0/", "0-1-5/", plan.OrderUnknown},
		"a position of another engine":                             {"00000000-0000-0000-0000-000000000001:1-5", "0-1-5/", plan.OrderUnknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := New().Compare(row.a, row.b); got != row.want {
				t.Errorf("%q to %q is %d, want %d", row.a, row.b, got, row.want)
			}
			if got := New().Compare(row.b, row.a); got != row.want.Inverse() {
				t.Errorf("%q to %q is %d, want %d", row.b, row.a, got, row.want.Inverse())
			}
		})
	}
}

func FuzzComparing(f *testing.F) {
	for _, text := range []string{"", "/", "0-1-5/", "0-1-100,0-2-103/0-2-110", "0-1-100/0-2-110", "0-1-101/", "1-1-1/", "0-1-5/0-2-5"} {
		f.Add(text, "0-1-100,0-2-103/")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		engine := New()
		if got, back := engine.Compare(a, b), engine.Compare(b, a); got != back.Inverse() {
			t.Errorf("%q to %q is %d, and back %d", a, b, got, back)
		}
		want := plan.OrderSame
		if _, isKnown := parsePosition(a); !isKnown {
			want = plan.OrderUnknown
		}
		if got := engine.Compare(a, a); got != want {
			t.Errorf("%q to itself is %d, want %d", a, got, want)
		}
	})
}

func TestAPrimaryWaitsForOneReplicaAtMostAndNoAccountIsCopied(t *testing.T) {
	if most := New().MostAcknowledgements(); most != 1 {
		t.Errorf("it waits for %d", most)
	}
	if New().DemotesAtStart() || New().CopiesAccounts() {
		t.Error("a running primary can be demoted, and accounts are set on each member")
	}
}
