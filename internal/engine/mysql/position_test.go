// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strconv"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/plan"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "4a6f2a67-5d87-11e6-a6bd-0242ac110003"
)

func TestPositionsAreComparedAsSets(t *testing.T) {
	for sentence, row := range map[string]struct {
		position, other string
		want            plan.Order
	}{
		"the same":                                    {uuidA + ":1-5", uuidA + ":1-5", plan.OrderSame},
		"the same in other words":                     {uuidA + ":1-5:4-7," + uuidA + ":8", uuidA + ":1-8", plan.OrderSame},
		"in another order":                            {uuidA + ":1-5,\n" + uuidB + ":1", uuidB + ":1," + uuidA + ":1-5", plan.OrderSame},
		"nothing, and nothing":                        {EmptyPosition, EmptyPosition, plan.OrderSame},
		"nothing, and something":                      {EmptyPosition, uuidA + ":1", plan.OrderBehind},
		"one more":                                    {uuidA + ":1-6", uuidA + ":1-5", plan.OrderAhead},
		"one of another source more":                  {uuidA + ":1-5," + uuidB + ":1", uuidA + ":1-5", plan.OrderAhead},
		"a gap filled":                                {uuidA + ":1-5", uuidA + ":1-2:4-5", plan.OrderAhead},
		"a gap on each side":                          {uuidA + ":1-3:5", uuidA + ":1-4", plan.OrderApart},
		"a longer history, with one of its own":       {uuidA + ":1-900," + uuidB + ":1", uuidA + ":1-901", plan.OrderApart},
		"other sources":                               {uuidA + ":1", uuidB + ":1", plan.OrderApart},
		"a tag is another history":                    {uuidA + ":mine:1-5", uuidA + ":1-5", plan.OrderApart},
		"a tag beside numbers without one":            {uuidA + ":1-5:mine:1-2", uuidA + ":1-5", plan.OrderAhead},
		"tags in one part, and in two":                {uuidA + ":1-5:a:1-2:b:3", uuidA + ":1-5," + uuidA + ":b:3," + uuidA + ":a:1-2", plan.OrderSame},
		"a position that isn't known":                 {"", uuidA + ":1", plan.OrderUnknown},
		"two that aren't known":                       {"", "", plan.OrderUnknown},
		"no set":                                      {"0-1-17", uuidA + ":1", plan.OrderUnknown},
		"a source without numbers":                    {uuidA, uuidA + ":1", plan.OrderUnknown},
		"a tag without numbers":                       {uuidA + ":mine", uuidA + ":1", plan.OrderUnknown},
		"two tags for one number":                     {uuidA + ":a:b:1", uuidA + ":1", plan.OrderUnknown},
		"numbers begin with 1":                        {uuidA + ":0-5", uuidA + ":1", plan.OrderUnknown},
		"a range that ends before it begins":          {uuidA + ":5-1", uuidA + ":1", plan.OrderUnknown},
		"a number that is too great":                  {uuidA + ":1-9223372036854775807", uuidA + ":1", plan.OrderUnknown},
		"a part of a set that was cut":                {uuidA + ":1-5,", uuidA + ":1", plan.OrderUnknown},
		"a name that only looks like a source's":      {strings.ToUpper(uuidA) + ":1", uuidA + ":1", plan.OrderUnknown},
		"the greatest number that a server gives out": {uuidA + ":1-9223372036854775806", uuidA + ":1", plan.OrderAhead},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := New().Compare(row.position, row.other); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
			if got := New().Compare(row.other, row.position); got != row.want.Inverse() {
				t.Errorf("the other way round it is %v, want %v", got, row.want.Inverse())
			}
		})
	}
}

func FuzzPositionsAreComparedTheSameBothWays(f *testing.F) {
	for _, seed := range []string{"", EmptyPosition, uuidA + ":1-5", uuidA + ":1-5:7:x:1," + uuidB + ":3", ",", ":", uuidA + ":1-5-7", uuidA + ":" + uuidB} {
		f.Add(seed, uuidA+":1-5", uuidB+":1-2")
		f.Add(uuidA+":2", seed, seed)
	}
	engine := New()
	f.Fuzz(func(t *testing.T, a, b, c string) {
		_, isSet := parseGTIDs(a)
		if got := engine.Compare(a, a); (got == plan.OrderSame) != isSet || !isSet && got != plan.OrderUnknown {
			t.Errorf("%q compared with itself is %v", a, got)
		}
		order := engine.Compare(a, b)
		if back := engine.Compare(b, a); back != order.Inverse() {
			t.Errorf("%q and %q are %v, and %v the other way round", a, b, order, back)
		}
		if order.Has() && engine.Compare(b, c).Has() && !engine.Compare(a, c).Has() {
			t.Errorf("%q has all of %q, which has all of %q", a, b, c)
		}
		// Two sets side by side are their union.
		if order != plan.OrderUnknown && a != EmptyPosition && b != EmptyPosition && (!engine.Compare(a+","+b, a).Has() || !engine.Compare(a+","+b, b).Has()) {
			t.Errorf("%q and %q aren't in both of them", a, b)
		}
	})
}

// A bit of a small number is one transaction, so that sets are easily compared in
// another way.
func FuzzASetHasWhatItsBitsSay(f *testing.F) {
	f.Add(uint64(0), uint64(1))
	f.Add(uint64(0b1011), uint64(0b0011))
	f.Add(uint64(0b1011), uint64(0b0100))
	engine := New()
	f.Fuzz(func(t *testing.T, a, b uint64) {
		want := plan.OrderApart
		switch {
		case a == b:
			want = plan.OrderSame
		case a&^b == 0:
			want = plan.OrderBehind
		case b&^a == 0:
			want = plan.OrderAhead
		}
		if got := engine.Compare(ofBits(a), ofBits(b)); got != want {
			t.Errorf("%q and %q are %v, want %v", ofBits(a), ofBits(b), got, want)
		}
	})
}

func ofBits(bits uint64) string {
	if bits == 0 {
		return EmptyPosition
	}
	parts := []string{uuidA}
	for number := range 64 {
		if bits>>number&1 == 1 {
			parts = append(parts, strconv.Itoa(number+1))
		}
	}
	return strings.Join(parts, ":")
}
