//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// references is how often a scenario is played without a fault. What differs among
// those runs may differ in others, too.
const references = 3

// reference is what runs of a scenario without a fault lead to.
type reference struct{ runs []outcome }

// played is the reference of a scenario that several tests play.
type played struct {
	once sync.Once
	want *reference // nil as long as there is none
}

var (
	playedMu sync.Mutex
	playedOf = map[string]*played{} // by the scenario's name
)

// referenceFor returns what runs without a fault lead to. They are played once.
func referenceFor(t *testing.T, s scenario) *reference {
	t.Helper()
	playedMu.Lock()
	one := playedOf[s.name]
	if one == nil {
		one = &played{}
		playedOf[s.name] = one
	}
	playedMu.Unlock()
	one.once.Do(func() {
		want := &reference{}
		for range references {
			want.runs = append(want.runs, (&staging{scenario: s}).run(t, nil))
		}
		one.want = want
	})
	if one.want == nil {
		t.Fatal("another test has found nothing to compare with")
	}
	return one.want
}

// toBreak are the writes that a scenario has, and no other.
func (s scenario) toBreak(r *reference) []write {
	var writes []write
	for _, one := range r.runs[0].writes {
		if one.step >= s.known {
			writes = append(writes, one)
		}
	}
	return writes
}

// isSure tells whether each run has a write. How often it is repeated varies: two
// changes of the topology may be one, and an eviction may have to wait.
func (r *reference) isSure(written write) bool {
	return written.times == 1 && !slices.ContainsFunc(r.runs, func(one outcome) bool { return !slices.Contains(one.writes, written) })
}

// compareState tells how what a namespace holds after a step differs from what it
// holds in the runs without a fault: it has to have all lines that all of them have,
// and no others than one of them has.
func (r *reference) compareState(step int, got map[string]string) error {
	if r == nil {
		return nil
	}
	var problems []error
	objects := map[string]bool{}
	for _, one := range r.runs {
		for object := range one.states[step] {
			objects[object] = true
		}
	}
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		var texts []string
		for _, one := range r.runs {
			texts = append(texts, one.states[step][object])
		}
		if missing, excess := differences(texts, got[object]); len(missing)+len(excess) > 0 {
			problems = append(problems, fmt.Errorf("%s lacks the lines %q, and has %q", object, missing, excess))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(got)) {
		if !objects[object] {
			problems = append(problems, fmt.Errorf("there is also %s", object))
		}
	}
	return errors.Join(problems...)
}

// differences are the lines that all texts have and got lacks, and those that got has
// and none of the texts.
func differences(texts []string, got string) (missing, excess []string) {
	least, most := linesOf(texts[0]), linesOf(texts[0])
	for _, text := range texts[1:] {
		lines := linesOf(text)
		for line := range least {
			least[line] = min(least[line], lines[line])
		}
		for line, times := range lines {
			most[line] = max(most[line], times)
		}
	}
	lines := linesOf(got)
	for _, line := range slices.Sorted(maps.Keys(least)) {
		if lines[line] < least[line] {
			missing = append(missing, line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if lines[line] > most[line] {
			excess = append(excess, line)
		}
	}
	return missing, excess
}

// linesOf tells how often a text has each of its lines.
func linesOf(text string) map[string]int {
	lines := map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		lines[line]++
	}
	return lines
}

// compareCounts fails the test if an object was made or deleted more or less often
// than in the runs without a fault.
func (r *reference) compareCounts(t *testing.T, got outcome) {
	t.Helper()
	if r == nil {
		return
	}
	for what, counts := range map[string]func(outcome) map[string]int{
		"made":    func(o outcome) map[string]int { return o.creations },
		"deleted": func(o outcome) map[string]int { return o.deletions },
	} {
		places := maps.Clone(counts(got))
		for _, one := range r.runs {
			maps.Copy(places, counts(one))
		}
		for _, place := range slices.Sorted(maps.Keys(places)) {
			var wanted []int
			for _, one := range r.runs {
				wanted = append(wanted, counts(one)[place])
			}
			if times := counts(got)[place]; times < slices.Min(wanted) || times > slices.Max(wanted) {
				t.Errorf("in %s an object was %s %d times, and without a fault %v times", place, what, times, wanted)
			}
		}
	}
}
