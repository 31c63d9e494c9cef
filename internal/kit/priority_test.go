// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"k8s.io/client-go/tools/cache"
)

func named(name string) cache.ObjectName { return cache.ObjectName{Namespace: "shop", Name: name} }

func TestKeysAreServed(t *testing.T) {
	type step struct {
		do  func(*order, cache.ObjectName)
		key string
	}
	pushPatiently := func(o *order, key cache.ObjectName) { o.mayWait(key); o.Push(key) }
	pushUrgently := func(o *order, key cache.ObjectName) { o.hurry(key); o.Push(key) }
	touchPatiently := func(o *order, key cache.ObjectName) { o.mayWait(key); o.Touch(key) }
	touchUrgently := func(o *order, key cache.ObjectName) { o.hurry(key); o.Touch(key) }
	both := func(o *order, key cache.ObjectName) { o.hurry(key); o.mayWait(key); o.Push(key) }
	for sentence, row := range map[string]struct {
		steps []step
		want  []string
	}{
		"in the order in which they came": {[]step{{pushUrgently, "a"}, {pushUrgently, "b"}}, []string{"a", "b"}},
		"changes before what can wait":    {[]step{{pushPatiently, "a"}, {pushPatiently, "b"}, {pushUrgently, "c"}}, []string{"c", "a", "b"}},
		"sooner once they change, and once": {
			[]step{{pushPatiently, "a"}, {pushPatiently, "b"}, {touchUrgently, "b"}}, []string{"b", "a"},
		},
		"no later for being asked for again":      {[]step{{pushUrgently, "a"}, {touchPatiently, "a"}, {pushUrgently, "b"}}, []string{"a", "b"}},
		"at once where both was asked for":        {[]step{{pushPatiently, "a"}, {both, "b"}}, []string{"b", "a"}},
		"at once where they come by themselves":   {[]step{{pushPatiently, "a"}, {(*order).Push, "b"}}, []string{"b", "a"}},
		"in their old place when touched in vain": {[]step{{pushUrgently, "a"}, {pushUrgently, "b"}, {touchUrgently, "a"}}, []string{"a", "b"}},
		"urgently only for the time it was asked for": {
			[]step{{pushUrgently, "a"}, {func(o *order, _ cache.ObjectName) { o.Pop() }, ""}, {pushPatiently, "a"}, {pushUrgently, "b"}},
			[]string{"b", "a"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := newOrder()
			for _, step := range row.steps {
				step.do(o, named(step.key))
			}
			if o.Len() != len(row.want) {
				t.Fatalf("%d keys are queued, want %d", o.Len(), len(row.want))
			}
			for i, want := range row.want {
				if got := o.Pop(); got != named(want) {
					t.Errorf("key %d is %s, want %s", i, got.Name, want)
				}
			}
			if o.Len() != 0 {
				t.Errorf("%d keys are left", o.Len())
			}
		})
	}
}

// TestNoKeyIsLostOrServedTwice drives the order at random beside a set.
func TestNoKeyIsLostOrServedTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	o, queued := newOrder(), map[cache.ObjectName]bool{}
	for range 20_000 {
		key := named(strconv.Itoa(random.IntN(50)))
		if random.IntN(2) == 0 {
			o.hurry(key)
		} else {
			o.mayWait(key)
		}
		switch {
		case random.IntN(3) == 0 && len(queued) > 0:
			got := o.Pop()
			if !queued[got] {
				t.Fatalf("%s was served and isn't queued", got)
			}
			delete(queued, got)
		case queued[key]:
			o.Touch(key)
		default:
			o.Push(key)
			queued[key] = true
		}
		if o.Len() != len(queued) {
			t.Fatalf("%d keys are queued, want %d", o.Len(), len(queued))
		}
	}
}
