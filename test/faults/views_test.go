//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// lagTime is how much later one resource is seen than all others, and stallTime
	// for how long nothing of one is seen.
	lagTime   = 500 * time.Millisecond
	stallTime = 3 * time.Second
)

// watched are the resources that an operator watches, as they stand in paths.
func watched() []string {
	return []string{
		"databasemanagers", "pods", "statefulsets", "persistentvolumeclaims", "configmaps", "secrets", "services",
		"networkpolicies", "poddisruptionbudgets", "foos", "deployments", "replicasets",
	}
}

// TestAnotherViewLeadsToTheSame has the operator see one resource late, not at all
// for a while, or not every state of it, and begin again with a list of the past.
func TestAnotherViewLeadsToTheSame(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := referenceFor(t, s)
			t.Run("at once", func(t *testing.T) {
				for name, run := range s.views() {
					if !isChosen(s.name + name) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						env.tally.tried(t, s.name, len(s.toBreak(want)), nil)
						run(t, want)
					})
				}
			})
		})
	}
}

// views are the runs of a scenario in which the operator sees something else than
// there is.
func (s scenario) views() map[string]func(*testing.T, *reference) {
	views := map[string]func(*testing.T, *reference){}
	for _, resource := range watched() {
		views[resource+" are seen late"] = func(t *testing.T, want *reference) {
			t.Helper()
			s.runSeeing(t, want, &view{resource: resource, lag: lagTime}, nil)
		}
		views["not every state of "+resource+" is seen"] = func(t *testing.T, want *reference) {
			t.Helper()
			s.runSeeing(t, want, &view{resource: resource, merges: true}, nil)
		}
		for step := s.known; step < len(s.steps); step++ {
			views[fmt.Sprintf("%s aren't seen in step %d", resource, step)] = func(t *testing.T, want *reference) {
				t.Helper()
				s.runStalled(t, want, resource, step)
			}
		}
	}
	for step := range s.steps {
		views[fmt.Sprintf("it begins again with what was before step %d", step)] = func(t *testing.T, want *reference) {
			t.Helper()
			s.runInThePast(t, want, step)
		}
	}
	return views
}

// runSeeing plays the scenario. beside, if there is one, is called before each step,
// and once it has begun.
func (s scenario) runSeeing(t *testing.T, want *reference, sees *view, beside func(g *staging, step int, hasBegun bool)) {
	t.Helper()
	g := &staging{scenario: s, sees: sees, want: want}
	if beside == nil {
		g.run(t, nil)
		return
	}
	g.run(t, func(step int, hasBegun bool) { beside(g, step, hasBegun) })
}

// runStalled has nothing of a resource be seen for a while from a step's begin on.
func (s scenario) runStalled(t *testing.T, want *reference, resource string, stalled int) {
	t.Helper()
	sees := &view{resource: resource}
	resume := func() {}
	s.runSeeing(t, want, sees, func(_ *staging, step int, hasBegun bool) {
		switch {
		case step == stalled && !hasBegun:
			resume = sees.stall()
		case step == stalled:
			<-time.After(stallTime)
			resume()
		}
	})
}

// runInThePast ends the operator in the middle of a step, and starts another that
// lists what there was before it.
func (s scenario) runInThePast(t *testing.T, want *reference, interrupted int) {
	t.Helper()
	sees := &view{}
	var version string
	s.runSeeing(t, want, sees, func(g *staging, step int, hasBegun bool) {
		if step == interrupted && !hasBegun {
			version = s.version(t, g.namespace)
		}
		if step != interrupted || !hasBegun {
			return
		}
		<-time.After(stallTime)
		sees.turnBack(version)
		last := g.operators[len(g.operators)-1]
		g.ended = last
		_ = last.process.Kill() // it may have ended
		<-last.ended
	})
}

// version is that of the cluster now.
func (s scenario) version(t *testing.T, namespace string) string {
	t.Helper()
	list, err := env.kube.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}
