// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

func TestPositionsAreCompared(t *testing.T) {
	for sentence, row := range map[string]struct {
		one, other string
		want       plan.Order
	}{
		"the same place on the first timeline":                   {"7 1@0/3000148", "7 1@0/3000148", plan.OrderSame},
		"less on one timeline":                                   {"7 1@0/3000148", "7 1@0/3000149", plan.OrderBehind},
		"the high half counts more":                              {"7 1@1/0", "7 1@0/FFFFFFFF", plan.OrderAhead},
		"hexadecimal, not decimal, and not as text":              {"7 1@0/A", "7 1@0/10", plan.OrderBehind},
		"leading zeros are no difference":                        {"7 1@0/0000000A", "7 1@0/A", plan.OrderSame},
		"less on a timeline that both came to":                   {"7 1@0/5 2@0/7", "7 1@0/5 2@0/8", plan.OrderBehind},
		"one that stopped where the next timeline begins":        {"7 1@0/5", "7 1@0/5 2@0/8", plan.OrderBehind},
		"one that stopped before the next timeline begins":       {"7 1@0/4", "7 1@0/5 2@0/8", plan.OrderBehind},
		"one that is two promotions behind":                      {"7 1@0/4", "7 1@0/5 2@0/8 3@0/9", plan.OrderBehind},
		"a former primary that wrote beyond that":                {"7 1@0/6", "7 1@0/5 2@0/8", plan.OrderApart},
		"and even beyond all of the other's":                     {"7 1@0/9", "7 1@0/5 2@0/8", plan.OrderApart},
		"one that wrote beyond the last promotion but one":       {"7 1@0/5 2@0/9", "7 1@0/5 2@0/8 3@0/9", plan.OrderApart},
		"two that were promoted at different places":             {"7 1@0/5 2@0/8", "7 1@0/6 2@0/8", plan.OrderApart},
		"two that left for different timelines":                  {"7 1@0/5 2@0/8", "7 1@0/5 3@0/8", plan.OrderApart},
		"two that parted earlier and have been promoted since":   {"7 1@0/5 2@0/8 4@0/9", "7 1@0/5 3@0/8 4@0/9", plan.OrderApart},
		"a timeline whose number was passed over":                {"7 1@0/5 3@0/6", "7 1@0/5 3@0/8", plan.OrderBehind},
		"another cluster":                                        {"7 1@0/5", "8 1@0/5", plan.OrderApart},
		"a history that begins later":                            {"7 2@0/5", "7 1@0/5 2@0/6", plan.OrderApart},
		"nothing known of one":                                   {"", "7 1@0/5", plan.OrderUnknown},
		"nothing known of both":                                  {"", "", plan.OrderUnknown},
		"no place":                                               {"7", "7 1@0/5", plan.OrderUnknown},
		"no cluster":                                             {"1@0/5", "7 1@0/5", plan.OrderUnknown},
		"a part without a place":                                 {"7 1", "7 1@0/5", plan.OrderUnknown},
		"a timeline of zero":                                     {"7 0@0/5", "7 0@0/5", plan.OrderUnknown},
		"timelines that go down":                                 {"7 2@0/5 1@0/6", "7 2@0/5 1@0/6", plan.OrderUnknown},
		"one timeline twice":                                     {"7 2@0/5 2@0/6", "7 2@0/5 2@0/6", plan.OrderUnknown},
		"places that go back":                                    {"7 1@0/6 2@0/5", "7 1@0/6 2@0/5", plan.OrderUnknown},
		"a place that isn't hexadecimal":                         {"7 1@0/G", "7 1@0/G", plan.OrderUnknown},
		"a place that is too long":                               {"7 1@0/100000000", "7 1@0/100000000", plan.OrderUnknown},
		"a blank too many":                                       {"7 1@0/5 ", "7 1@0/5 ", plan.OrderUnknown},
		"another engine's position":                              {"3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5", "7 1@0/5", plan.OrderUnknown},
		"a sign, which the server never writes, before a number": {"7 1@0/+5", "7 1@0/5", plan.OrderUnknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := New().Compare(row.one, row.other); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
			if got := New().Compare(row.other, row.one); got != row.want.Inverse() {
				t.Errorf("the other way round got %d, want %d", got, row.want.Inverse())
			}
		})
	}
}

// positionSeeds are some for both fuzz tests.
func positionSeeds() []string {
	return []string{"", "7 1@0/3000148", "7 1@0/5 2@0/8", "7 1@0/5 3@0/8", "7 1@0/6", "8 1@0/5", "7 2@0/5 1@0/6", "7 1@0/G", "7 1@FFFFFFFF/FFFFFFFF", "\x00 @/"}
}

func FuzzPositionsHaveOneOrderWhicheverIsNamedFirst(f *testing.F) {
	for _, one := range positionSeeds() {
		for _, other := range positionSeeds() {
			f.Add(one, other)
		}
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		order := New().Compare(one, other)
		if back := New().Compare(other, one); back != order.Inverse() {
			t.Errorf("%q to %q is %d, and the other way round %d", one, other, order, back)
		}
		for _, text := range []string{one, other} {
			_, isPosition := parsePosition(text)
			if same := New().Compare(text, text); (same == plan.OrderSame) != isPosition || (same == plan.OrderUnknown) == isPosition {
				t.Errorf("%q to itself is %d, and it is a position: %t", text, same, isPosition)
			}
			if !isPosition && order != plan.OrderUnknown {
				t.Errorf("%q is no position, and %q to %q is %d", text, one, other, order)
			}
		}
	})
}

// Whoever has all of a second, which has all of a third, has all of the third.
func FuzzWhatHasAllOfAnotherHasAllThatThatHas(f *testing.F) {
	f.Add("7 1@0/5 2@0/8", "7 1@0/5", "7 1@0/4")
	f.Add("7 1@0/5", "7 1@0/5", "7 1@0/5")
	f.Add("7 1@0/5 2@0/6 3@0/9", "7 1@0/5 2@0/6", "7 1@0/5 2@0/6")
	f.Fuzz(func(t *testing.T, one, second, third string) {
		if New().Compare(one, second).Has() && New().Compare(second, third).Has() && !New().Compare(one, third).Has() {
			t.Errorf("%q has all of %q, which has all of %q, and not of that", one, second, third)
		}
	})
}
