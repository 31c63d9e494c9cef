//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tally is what was tried, by scenario.
type tally struct {
	mu   sync.Mutex
	rows map[string]*row
	// notes are what was measured besides.
	notes []string
}

type row struct{ writes, plans, failures int }

// tried notes a plan that has been played, and how many writes its scenario has. One
// whose write never came wasn't played.
func (a *tally) tried(t *testing.T, scenario string, writes int, hasHappened func() bool) {
	t.Helper()
	t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.rows == nil {
			a.rows = map[string]*row{}
		}
		found := a.rows[scenario]
		if found == nil {
			found = &row{}
			a.rows[scenario] = found
		}
		found.writes = max(found.writes, writes)
		if hasHappened == nil || hasHappened() {
			found.plans++
		}
		if t.Failed() {
			found.failures++
		}
	})
}

// note adds a line to what is said in the end.
func (a *tally) note(format string, values ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, fmt.Sprintf(format, values...))
}

// String is a table, with the time that it took in the end.
func (a *tally) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var text strings.Builder
	var all row
	fmt.Fprintf(&text, "%-55s %7s %7s %9s\n", "scenario", "writes", "plans", "failures")
	for _, name := range slices.Sorted(maps.Keys(a.rows)) {
		one := a.rows[name]
		fmt.Fprintf(&text, "%-55s %7d %7d %9d\n", name, one.writes, one.plans, one.failures)
		all = row{all.writes + one.writes, all.plans + one.plans, all.failures + one.failures}
	}
	fmt.Fprintf(&text, "%-55s %7d %7d %9d\n", "all", all.writes, all.plans, all.failures)
	var own, children syscall.Rusage
	// What fails here is a kernel that is none of those that this runs on.
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil && syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) == nil {
		machine := time.Duration(own.Utime.Nano() + own.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
		fmt.Fprintf(&text, "the tests' and the operators' own time on a processor: %s\n", machine.Round(time.Second))
	}
	for _, note := range a.notes {
		fmt.Fprintln(&text, note)
	}
	return text.String()
}
