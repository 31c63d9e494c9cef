//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"coolops.cn/database-manager/test/sample"
)

// fault is what goes wrong with one write.
type fault string

// The faults. After those that kill it, the operator is started again.
const (
	killedBefore fault = "killed before it"
	killedAfter  fault = "killed after it"
	answerLost   fault = "its answer lost"
	conflictOnce fault = "a conflict, once"
	tooMany      fault = "too many requests, three times"
	overloaded   fault = "overloaded, three times"
	noRight      fault = "no right, for a while"
	notValid     fault = "not valid, for a while"
	heldBack     fault = "held back until another operator has worked"
)

func allFaults() []fault {
	return []fault{killedBefore, killedAfter, answerLost, conflictOnce, tooMany, overloaded, noRight, notValid, heldBack}
}

// refusedFor is for how long what is lifted later is refused.
const refusedFor = 1500 * time.Millisecond

// write is one write of a scenario: the how manyth of its kind in a step.
type write struct {
	step  int
	key   string
	times int
}

func (w write) String() string { return fmt.Sprintf("step %d, %s, the %d.", w.step, w.key, w.times) }

// keyOf tells writes of one scenario from each other, in whichever namespace.
func keyOf(r request, namespace string) string {
	return r.method + " " + strings.ReplaceAll(r.path, namespace, "NAMESPACE")
}

// writesOf are the writes among the requests of a step, each with how often there was
// one like it before it.
func writesOf(step int, requests []request, namespace string) []write {
	var writes []write
	times := map[string]int{}
	for _, r := range requests {
		if key := keyOf(r, namespace); r.isWork() {
			times[key]++
			writes = append(writes, write{step, key, times[key]})
		}
	}
	return writes
}

// plan is one fault at one write.
type plan struct {
	write write
	fault fault

	mu        sync.Mutex
	step      int
	times     int
	happened  int
	firstTime time.Time
}

func (p *plan) String() string { return fmt.Sprintf("%s: %s", p.write, p.fault) }

// begins tells that a step begins.
func (p *plan) begins(step int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step
}

// judge is what decides about the requests of the operator that runs in namespace.
func (p *plan) judge(namespace string) func(request) verdict {
	return func(r request) verdict {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.fault == heldBack && p.happened > 0 && r.isLease() {
			return conflict // it is cut off from its lease
		}
		if !r.isWork() || p.step != p.write.step || keyOf(r, namespace) != p.write.key {
			return pass
		}
		if p.times++; p.times < p.write.times {
			return pass
		}
		return p.next()
	}
}

// next is what happens to the write, and to those like it after it.
func (p *plan) next() verdict {
	if p.firstTime.IsZero() {
		p.firstTime = time.Now()
	}
	once, often := p.happened == 0, p.happened < 3
	isRefused := time.Since(p.firstTime) < refusedFor
	p.happened++
	switch {
	case p.fault == killedBefore && once:
		return dieBefore
	case p.fault == killedAfter && once:
		return dieAfter
	case p.fault == answerLost && once:
		return lose
	case p.fault == conflictOnce && once:
		return conflict
	case p.fault == tooMany && often:
		return throttle
	case p.fault == overloaded && often:
		return overload
	case p.fault == noRight && isRefused:
		return forbid
	case p.fault == notValid && isRefused:
		return reject
	case p.fault == heldBack && once:
		return hold
	}
	return pass
}

// hasHappened tells whether the write came.
func (p *plan) hasHappened() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.happened > 0
}

// holdsSince is since when the write is held back.
func (p *plan) holdsSince() (since time.Time, isHolding bool) {
	if p == nil {
		return time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.firstTime, p.fault == heldBack && p.happened > 0
}

// kills tells whether the operator has to be started again.
func (f fault) kills() bool { return slices.Contains([]fault{killedBefore, killedAfter}, f) }

// isChosen tells whether a plan is one of those that are played: all of them, or one
// of FAULTS_SHARE, which FAULTS_SEED chooses.
func isChosen(plan string) bool { return sample.IsChosen(env.seed, env.share, plan) }
