// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
)

// TestADatabaseIsLookedAtAgain when time alone changes something, whatever else
// is wrong with it.
func TestADatabaseIsLookedAtAgain(t *testing.T) {
	for sentence, row := range map[string]struct {
		wakeIn time.Duration
		retry  time.Duration // of a problem; below zero there is none
		want   time.Duration
	}{
		"never, where it is well":               {0, -1, 0},
		"never, where only the spec can help":   {0, 0, 0},
		"after a while":                         {time.Second, -1, time.Second},
		"for a problem":                         {0, time.Minute, time.Minute},
		"before it is tried again":              {time.Second, time.Minute, time.Second},
		"once it is tried again":                {time.Minute, time.Second, time.Second},
		"after a while, for all that it stalls": {time.Second, 0, time.Second},
	} {
		for where, set := range map[string]func(*plan.Plan, *plan.Outcome, *plan.Problem){
			"in the plan": func(p *plan.Plan, _ *plan.Outcome, problem *plan.Problem) { p.Problem = problem },
			"beside it":   func(p *plan.Plan, _ *plan.Outcome, problem *plan.Problem) { p.Aside = problem },
			"on its way":  func(_ *plan.Plan, o *plan.Outcome, problem *plan.Problem) { o.Problem = problem },
		} {
			todo, outcome := plan.Plan{WakeIn: row.wakeIn}, plan.Outcome{}
			if row.retry >= 0 {
				set(&todo, &outcome, &plan.Problem{Reason: "Test", Retry: row.retry})
			}
			got := time.Duration(0)
			if wait, isWait := errors.AsType[*kit.Wait](next(todo, outcome, nil)); isWait {
				got = wait.After
			}
			if got != row.want {
				t.Errorf("%s, %s: after %s, want %s", sentence, where, got, row.want)
			}
		}
	}
}

// A status that waits to be written is looked at in time, whatever else is waited for.
func TestAStatusThatWaitsIsWrittenInTime(t *testing.T) {
	failure := errors.New("tried again by itself")
	for sentence, row := range map[string]struct {
		result    error
		unwritten time.Duration
		want      time.Duration // below zero for the result as it is
	}{
		"with nothing else to wait for":      {nil, time.Second, time.Second},
		"where only a change can help":       {&kit.Stalled{Reason: "test"}, time.Second, time.Second},
		"before what is to be waited for":    {&kit.Wait{After: time.Minute, Reason: "test"}, time.Second, time.Second},
		"after it":                           {&kit.Wait{After: time.Millisecond, Reason: "test"}, time.Second, -1},
		"with what failed":                   {failure, time.Second, -1},
		"and never, where it is as it is":    {nil, 0, -1},
		"and no sooner than what waits then": {&kit.Wait{After: time.Minute, Reason: "test"}, 0, -1},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := atLatest(row.result, row.unwritten)
			wait, isWait := errors.AsType[*kit.Wait](got)
			if isSame := got == row.result; isSame != (row.want < 0) || !isSame && (!isWait || wait.After != row.want) { //nolint:errorlint // the very result
				t.Errorf("%v becomes %v, want a wait of %s", row.result, got, row.want)
			}
		})
	}
}

// Where all members start, the others are up before the primary as often as not, and
// are no reason to have another one.
func TestThePrimaryIsWaitedForFromWhenItCouldBeSucceeded(t *testing.T) {
	c := &Controller{unservedSince: map[types.UID]time.Time{}, forsakenSince: map[types.UID]time.Time{}}
	begun := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i, row := range []struct {
		sentence              string
		serves, hasSuccessors bool
		since                 int // which row's time; below zero for none
	}{
		{"it serves", true, true, -1},
		{"it is away", false, true, 1},
		{"it is away still", false, true, 1},
		{"the others are away, too", false, false, 3},
		{"and still are", false, false, 3},
		{"the others are back before it", false, true, 5},
		{"it is away still", false, true, 5},
		{"it is back", true, true, -1},
		{"it is away with all others", false, false, 8},
	} {
		at := func(i int) time.Time { return begun.Add(time.Duration(i) * time.Minute) }
		want := time.Time{}
		if row.since >= 0 {
			want = at(row.since)
		}
		if got := c.unserved("uid", row.serves, row.hasSuccessors, at(i)); !got.Equal(want) {
			t.Errorf("%d, %s: since %s, want %s", i, row.sentence, got, want)
		}
	}
}
