//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scenario is what a user does, step by step.
type scenario struct {
	name  string
	steps []step
}

// step is one thing that a user does, and how to see that the operator has
// answered it.
type step struct {
	name string
	do   func(t *testing.T, namespace string)
	// isDone returns what is still missing.
	isDone func(ctx context.Context, namespace string) error
}

// quiet is for how long an operator has to write nothing to be called at rest.
const quiet = 400 * time.Millisecond

// stepBound is how long a step may take, with a restart in it. Kubernetes' own
// garbage collector sees a resource that was just installed after half a minute.
const stepBound = time.Minute

// outcome is what a run of a scenario leads to.
type outcome struct {
	// states are what the namespace holds after each step.
	states []map[string]string
	// writes is what was written, in order; creations how often a creation in
	// each collection succeeded.
	writes    []request
	creations map[string]int
}

// TestAnOperatorMayDieAroundEachOfItsWrites kills it before and after each write
// of each scenario, starts it again, and expects what a run without a death
// leads to: the same objects, each made once.
func TestAnOperatorMayDieAroundEachOfItsWrites(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := s.run(t, nil)
			if len(want.writes) < 3 {
				t.Fatalf("the run without a death has only %d writes", len(want.writes))
			}
			t.Run("at once", func(t *testing.T) {
				for n := range want.writes {
					for how, verdict := range map[string]verdict{"before": dieBefore, "after": dieAfter} {
						t.Run(fmt.Sprintf("%s write %d", how, n+1), func(t *testing.T) {
							t.Parallel()
							got := s.run(t, &death{write: n, how: verdict})
							compare(t, s, want, got)
						})
					}
				}
			})
		})
	}
}

// death is when an operator is killed: around its write of that index.
type death struct {
	write int
	how   verdict
}

// judge returns what decides about the operator's requests.
func (d *death) judge() func(request) verdict {
	if d == nil {
		return nil
	}
	writes := 0
	return func(r request) verdict {
		if !r.isWork() {
			return pass
		}
		writes++
		if writes == d.write+1 {
			return d.how
		}
		return pass
	}
}

// run plays the scenario with an operator that is killed once, if a death is
// given, and started again then.
func (s scenario) run(t *testing.T, d *death) outcome {
	t.Helper()
	namespace := newNamespace(t)
	flags := []string{"--namespaces=" + namespace, "--leader-elect=false"}
	operators := []*operator{startOperator(t, d.judge(), flags...)}
	result := outcome{creations: map[string]int{}}
	for _, step := range s.steps {
		step.do(t, namespace)
		eventually(t, stepBound, s.name+": "+step.name, func(ctx context.Context) error {
			last := operators[len(operators)-1]
			if last.hasEnded() {
				if len(operators) > 1 {
					t.Fatalf("the second operator ended by itself: %v", last.err)
				}
				operators = append(operators, startOperator(t, nil, flags...))
				return errors.New("the operator has just been started again")
			}
			if writes := last.seen(request.isWork); len(writes) > 0 && time.Since(writes[len(writes)-1].at) < quiet {
				return errors.New("the operator isn't at rest")
			}
			return step.isDone(ctx, namespace)
		})
		result.states = append(result.states, stateOf(t, namespace))
	}
	for _, operator := range operators {
		for _, write := range operator.seen(request.isWork) {
			result.writes = append(result.writes, write)
			if write.method == http.MethodPost && write.status == http.StatusCreated && !strings.HasSuffix(write.path, "/eviction") {
				result.creations[strings.ReplaceAll(write.path, namespace, "NAMESPACE")]++
			}
		}
	}
	// How often the status is written varies by one or two, so that the last
	// writes of the reference may have no counterpart.
	if d != nil && len(operators) == 1 && len(result.writes) > d.write {
		t.Error("the operator wasn't killed")
	}
	return result
}

func compare(t *testing.T, s scenario, want, got outcome) {
	t.Helper()
	for i, step := range s.steps {
		for _, object := range slices.Sorted(maps.Keys(want.states[i])) {
			if difference := cmp.Diff(strings.Split(want.states[i][object], "\n"), strings.Split(got.states[i][object], "\n")); difference != "" {
				t.Errorf("after %q, %s differs (-want +got):\n%s", step.name, object, difference)
			}
		}
		for object := range got.states[i] {
			if _, isWanted := want.states[i][object]; !isWanted {
				t.Errorf("after %q there is also %s", step.name, object)
			}
		}
	}
	if !maps.Equal(got.creations, want.creations) {
		t.Errorf("objects were made %v, want %v", got.creations, want.creations)
	}
}
