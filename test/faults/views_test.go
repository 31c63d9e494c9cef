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
			want := s.run(t, nil)
			t.Run("at once", func(t *testing.T) {
				for _, resource := range watched() {
					t.Run(resource+" are seen late", func(t *testing.T) {
						t.Parallel()
						env.tally.tried(t, s.name, len(want.writes))
						g := &staging{scenario: s, namespace: newNamespace(t), sees: &view{resource: resource, lag: lagTime}}
						compare(t, s, want, g.run(t, nil))
					})
					t.Run("not every state of "+resource+" is seen", func(t *testing.T) {
						t.Parallel()
						env.tally.tried(t, s.name, len(want.writes))
						g := &staging{scenario: s, namespace: newNamespace(t), sees: &view{resource: resource, merges: true}}
						compare(t, s, want, g.run(t, nil))
					})
					for i := range s.steps {
						t.Run(fmt.Sprintf("%s aren't seen in step %d", resource, i), func(t *testing.T) {
							t.Parallel()
							env.tally.tried(t, s.name, len(want.writes))
							s.runStalled(t, want, resource, i)
						})
					}
				}
				for i := range s.steps {
					t.Run(fmt.Sprintf("it begins again with what was before step %d", i), func(t *testing.T) {
						t.Parallel()
						env.tally.tried(t, s.name, len(want.writes))
						s.runInThePast(t, want, i)
					})
				}
			})
		})
	}
}

// runStalled has nothing of a resource be seen for a while from a step's begin on.
func (s scenario) runStalled(t *testing.T, want outcome, resource string, stalled int) {
	t.Helper()
	sees := &view{resource: resource}
	g := &staging{scenario: s, namespace: newNamespace(t), sees: sees}
	resume := func() {}
	got := g.run(t, func(step int, hasBegun bool) {
		switch {
		case step == stalled && !hasBegun:
			resume = sees.stall()
		case step == stalled:
			<-time.After(stallTime)
			resume()
		}
	})
	compare(t, s, want, got)
}

// runInThePast ends the operator in the middle of a step, and starts another that
// lists what there was before it.
func (s scenario) runInThePast(t *testing.T, want outcome, interrupted int) {
	t.Helper()
	sees := &view{}
	g := &staging{scenario: s, namespace: newNamespace(t), sees: sees}
	var version string
	got := g.run(t, func(step int, hasBegun bool) {
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
	compare(t, s, want, got)
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
