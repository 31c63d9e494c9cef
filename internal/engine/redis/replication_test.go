// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

// at writes a position with histories of one letter each: "a:5" or "b:7,a:5".
func at(short string) string {
	var parts []string
	for part := range strings.SplitSeq(short, ",") {
		history, offset, _ := strings.Cut(part, ":")
		parts = append(parts, strings.Repeat(history, 40)+":"+offset)
	}
	return strings.Join(parts, ",")
}

// String writes a position as the client does.
func (p position) String() string {
	text := fmt.Sprintf("%s:%d", p.own.history, p.own.offset)
	if p.former.history != "" {
		text += fmt.Sprintf(",%s:%d", p.former.history, p.former.offset)
	}
	return text
}

func TestPositionsAreCompared(t *testing.T) {
	for sentence, row := range map[string]struct {
		ours, theirs string
		want         plan.Order
	}{
		"two replicas of one primary":                          {at("a:5"), at("a:7"), plan.OrderBehind},
		"at the same point":                                    {at("a:5"), at("a:5"), plan.OrderSame},
		"a replica, and one that was promoted at its point":    {at("a:5"), at("b:5,a:5"), plan.OrderSame},
		"a replica, and one that was promoted and has written": {at("a:5"), at("b:9,a:5"), plan.OrderBehind},
		"a replica, and one that was promoted further on":      {at("a:4"), at("b:9,a:5"), plan.OrderBehind},
		"an old primary that has what nobody got, and the new": {at("a:6"), at("b:9,a:5"), plan.OrderApart},
		"and before the new one has written":                   {at("a:6"), at("b:5,a:5"), plan.OrderAhead},
		"an old primary that has more, but fewer bytes":        {at("a:6"), at("b:50,a:5"), plan.OrderApart},
		"two replicas of the new primary":                      {at("b:8,a:5"), at("b:9,a:5"), plan.OrderBehind},
		"a replica that came anew knows one history only":      {at("b:8"), at("b:9,a:5"), plan.OrderBehind},
		"two that were promoted from one history":              {at("b:9,a:5"), at("c:9,a:5"), plan.OrderApart},
		"of which one has written nothing":                     {at("b:5,a:5"), at("c:9,a:5"), plan.OrderBehind},
		"of which one has written nothing, but knew more":      {at("b:7,a:7"), at("c:9,a:5"), plan.OrderApart},
		"of which neither has written anything":                {at("b:5,a:5"), at("c:7,a:7"), plan.OrderBehind},
		"from the same point, of which neither has written":    {at("b:5,a:5"), at("c:5,a:5"), plan.OrderSame},
		"a primary that is two promotions on":                  {at("a:5"), at("c:9,b:7"), plan.OrderUnknown},
		"a restarted primary has a history of its own":         {at("a:5"), at("b:0"), plan.OrderUnknown},
		"nothing known of one":                                 {"", at("a:5"), plan.OrderUnknown},
		"nothing known of both":                                {"", "", plan.OrderUnknown},
		"no history":                                           {at("0:5"), at("0:5"), plan.OrderUnknown},
		"a former history of zeros":                            {at("a:5,0:3"), at("a:5"), plan.OrderUnknown},
		"a former history that ends behind the position":       {at("b:4,a:5"), at("a:5"), plan.OrderUnknown},
		"the same history twice":                               {at("a:5,a:4"), at("a:5"), plan.OrderUnknown},
		"a negative number":                                    {at("a:-1"), at("a:5"), plan.OrderUnknown},
		"a number that isn't written as the server would":      {at("a:05"), at("a:5"), plan.OrderUnknown},
		"a number that is too great":                           {at("a:9223372036854775808"), at("a:5"), plan.OrderUnknown},
		"something behind it":                                  {at("b:7,a:5") + ",", at("a:5"), plan.OrderUnknown},
		"another engine's position":                            {"1/0A00F0", "1/0A00F0", plan.OrderUnknown},
		"a history in capitals":                                {strings.ToUpper(at("a:5")), at("a:5"), plan.OrderUnknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := New().Compare(row.ours, row.theirs); got != row.want {
				t.Errorf("%s to %s: got %d, want %d", row.ours, row.theirs, got, row.want)
			}
			if got := New().Compare(row.theirs, row.ours); got != row.want.Inverse() {
				t.Errorf("%s to %s: got %d, want %d", row.theirs, row.ours, got, row.want.Inverse())
			}
		})
	}
}

func FuzzCompareIsAnOrder(f *testing.F) {
	f.Add(at("a:5"), at("b:7,a:5"))
	f.Add(at("b:9,a:5"), at("c:9,a:5"))
	f.Add("", "x:1,y")
	f.Fuzz(func(t *testing.T, ours, theirs string) {
		engine := NewValkey()
		order := engine.Compare(ours, theirs)
		if engine.Compare(theirs, ours) != order.Inverse() {
			t.Errorf("%q to %q is %d, and the other way round %d", ours, theirs, order, engine.Compare(theirs, ours))
		}
		position, isPosition := parsePosition(ours)
		if isPosition && (position.String() != ours || engine.Compare(ours, ours) != plan.OrderSame) {
			t.Errorf("%q reads %s, and is to itself %d", ours, position, engine.Compare(ours, ours))
		}
		if !isPosition && order != plan.OrderUnknown {
			t.Errorf("%q is no position, and yet is %d to %q", ours, order, theirs)
		}
	})
}

// FuzzCompareAgreesWithWhatWasWritten lets members write: from numbers it makes
// three histories that branch off each other, and compares what the order says
// with the bytes themselves.
func FuzzCompareAgreesWithWhatWasWritten(f *testing.F) {
	f.Add(uint8(5), uint8(0), uint8(3), uint8(4), uint8(1))
	f.Add(uint8(9), uint8(2), uint8(9), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, shared, more, left, written, other uint8) {
		primary, promoted := uint64(shared), min(uint64(left), uint64(shared))
		a, b, c := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
		has := func(common uint64, own string, more uint8) string {
			return strings.Repeat("a", int(common)) + strings.Repeat(own, int(more))
		}
		members := map[string]string{ // what they have, by position
			position{own: point{a, primary + uint64(more)}}.String():                                 has(primary, "a", more),
			position{own: point{b, promoted + uint64(written)}, former: point{a, promoted}}.String(): has(promoted, "b", written),
			position{own: point{c, primary + uint64(other)}, former: point{a, primary}}.String():     has(primary, "c", other),
		}
		for ours, ourBytes := range members {
			for theirs, theirBytes := range members {
				has, lacks := strings.HasPrefix(ourBytes, theirBytes), !strings.HasPrefix(theirBytes, ourBytes)
				order := New().Compare(ours, theirs)
				if order == plan.OrderUnknown || order.Has() != has || order.Inverse().Has() == lacks {
					t.Errorf("%s to %s is %d; has %t, lacks %t", ours, theirs, order, has, lacks)
				}
			}
		}
	})
}
