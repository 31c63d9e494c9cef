//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/test/sample"
)

// scenario is what a user does, step by step.
type scenario struct {
	name  string
	steps []step
	// known is how many steps from the first on another scenario has, too: their
	// writes are broken there.
	known int
}

// step is one thing that a user does, and how to see that the operator has
// answered it.
type step struct {
	name string
	do   func(t *testing.T, namespace string)
	// isDone returns what is still missing.
	isDone func(ctx context.Context, namespace string) error
}

const (
	// quiet is for how long an operator has to write nothing to be called at rest, which
	// is for longer than a status waits to be written; some plans, one of longQuietShare,
	// wait for longQuiet besides, in which it has to ask for nothing.
	quiet          = 2 * time.Second
	longQuiet      = 30 * time.Second
	longQuietShare = 61
	// stepBound is how long a step may take, with a restart in it. Kubernetes' own
	// garbage collector sees a resource that was just installed after half a minute.
	stepBound = time.Minute
	// takeover is how long another operator may take to work in place of one that is
	// cut off from its lease, if there is anything to do.
	takeover = 25 * time.Second
)

// outcome is what a run of a scenario leads to.
type outcome struct {
	// states are what the namespace holds after each step.
	states []map[string]string
	// writes is what was written, in order; creations and deletions how often one
	// succeeded, by collection and by object.
	writes               []write
	creations, deletions map[string]int
}

// staging is one run of a scenario.
type staging struct {
	scenario
	plan      *plan      // nil if nothing goes wrong
	sees      *view      // nil if the operator sees what there is
	want      *reference // nil if it is one of the runs that others are compared with
	namespace string
	flags     []string
	operators []*operator
	isHeld    bool
	// ended is an operator that the test has ended.
	ended *operator
}

// run plays the scenario, and compares what it leads to. beside, if there is one, is
// called before each step, and once it has begun.
func (g *staging) run(t *testing.T, beside func(step int, hasBegun bool)) outcome {
	t.Helper()
	p := g.plan
	g.namespace = newNamespace(t)
	g.flags = []string{"--namespaces=" + g.namespace, "--leader-elect=false"}
	if p != nil && p.fault == heldBack {
		g.flags = []string{"--namespaces=" + g.namespace, "--leader-elect-namespace=" + g.namespace}
	}
	watchLabels(t, g.namespace)
	g.begin(t)
	result := outcome{creations: map[string]int{}, deletions: map[string]int{}}
	written := 0
	for i, step := range g.steps {
		if beside != nil {
			beside(i, false)
		}
		p.begins(i)
		step.do(t, g.namespace)
		if beside != nil {
			beside(i, true)
		}
		var state map[string]string
		eventually(t, stepBound, g.name+": "+step.name, func(ctx context.Context) error {
			if err := g.isAtRest(t); err != nil {
				return err
			}
			if err := step.isDone(ctx, g.namespace); err != nil {
				return err
			}
			state = stateOf(t, g.namespace)
			return g.want.compareState(i, state)
		})
		result.states = append(result.states, state)
		work := g.work()
		result.writes = append(result.writes, writesOf(i, work[written:], g.namespace)...)
		written = len(work)
	}
	g.staysQuiet(t)
	g.count(t, &result)
	g.checkSilence(t)
	g.want.compareCounts(t, result)
	return result
}

// staysQuiet looks for anything that an operator asks for after it has come to rest,
// in some of the runs.
func (g *staging) staysQuiet(t *testing.T) {
	t.Helper()
	if g.plan == nil || !sample.IsChosen(env.seed, longQuietShare, g.name+g.plan.String()) {
		return
	}
	begun := time.Now()
	<-time.After(longQuiet)
	for _, one := range g.operators {
		for _, r := range one.seen(func(r request) bool { return r.at.After(begun) && !r.isWatch() && !r.isLease() }) {
			t.Errorf("at rest an operator sent %s", r)
		}
	}
}

// begin starts the operator that the fault happens to, and another one that waits
// for its lease, if that is to take its place.
func (g *staging) begin(t *testing.T) {
	t.Helper()
	if g.plan == nil {
		g.operators = append(g.operators, startOperatorSeeing(t, g.sees, nil, g.flags...))
		return
	}
	g.operators = append(g.operators, startOperator(t, g.plan.judge(g.namespace), g.flags...))
	if g.plan.fault == heldBack {
		eventually(t, stepBound, "a leader", func(context.Context) error {
			if len(g.operators[0].seen(request.isLease)) < 2 {
				return errors.New("none has the lease")
			}
			return nil
		})
		g.operators = append(g.operators, startOperator(t, nil, g.flags...))
	}
}

// isAtRest starts an operator again that was killed, releases what is held once
// another has worked, and tells whether nobody writes any more.
func (g *staging) isAtRest(t *testing.T) error {
	t.Helper()
	last := g.operators[len(g.operators)-1]
	if last.hasEnded() {
		if g.isOver(last) {
			t.Fatalf("the operator ended by itself: %v", last.err)
		}
		g.operators = append(g.operators, startOperatorSeeing(t, g.sees, nil, g.flags...))
		return errors.New("the operator has just been started again")
	}
	if held, isHolding := g.plan.holdsSince(); isHolding && !g.isHeld {
		if work := last.seen(request.isWork); len(work) == 0 && time.Since(held) < takeover {
			return errors.New("nobody works in place of the operator whose write is held back")
		}
		g.isHeld = true
		close(g.operators[0].released)
		return errors.New("what was held back has just been sent")
	}
	for _, one := range g.operators {
		if err := isQuiet(one); err != nil {
			return err
		}
	}
	return nil
}

// isQuiet tells whether an operator hasn't written for a while.
func isQuiet(o *operator) error {
	if writes := o.seen(request.isWork); len(writes) > 0 && time.Since(writes[len(writes)-1].at) < quiet {
		return fmt.Errorf("it has just sent %s", writes[len(writes)-1])
	}
	return nil
}

// isOver tells whether an operator had no reason to end.
func (g *staging) isOver(last *operator) bool {
	wasKilled := g.plan != nil && g.plan.fault.kills() && len(g.operators) == 1
	return !wasKilled && last != g.ended
}

// work is what all operators wrote.
func (g *staging) work() []request {
	var requests []request
	for _, one := range g.operators {
		requests = append(requests, one.seen(request.isWork)...)
	}
	return requests
}

// count counts what was made and deleted.
func (g *staging) count(t *testing.T, result *outcome) {
	t.Helper()
	requests := g.work()
	for _, r := range requests {
		if r.method == http.MethodDelete && !r.namesUID() {
			t.Errorf("%s doesn't say which object it means", r)
		}
		place := strings.ReplaceAll(r.path, g.namespace, "NAMESPACE")
		switch {
		case r.method == http.MethodPost && r.status == http.StatusCreated && !strings.HasSuffix(place, "/eviction"):
			result.creations[place]++
		case r.method == http.MethodDelete && r.status < http.StatusBadRequest && r.status > 0:
			result.deletions[place]++
		}
	}
}

// TestOneFaultAtEachWrite has each fault happen at each write of each scenario, and
// expects what runs without one lead to: the same objects, each made once.
func TestOneFaultAtEachWrite(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := referenceFor(t, s)
			writes := s.toBreak(want)
			t.Run("at once", func(t *testing.T) {
				for _, written := range writes {
					for _, fault := range allFaults() {
						p := &plan{write: written, fault: fault}
						if !isChosen(s.name + p.String()) {
							continue
						}
						t.Run(p.String(), func(t *testing.T) {
							t.Parallel()
							env.tally.tried(t, s.name, len(writes), p.hasHappened)
							(&staging{scenario: s, plan: p, want: want}).run(t, nil)
							if !p.hasHappened() && want.isSure(written) {
								t.Error("the write never came")
							}
						})
					}
				}
			})
		})
	}
}
