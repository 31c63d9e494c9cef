//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// nodesOf are the nodes of the members, by name.
func (l life) nodesOf(t *testing.T) map[string]string {
	t.Helper()
	pods, err := l.pods(t.Context())
	if err != nil {
		t.Fatalf("list the members: %v", err)
	}
	nodes := map[string]string{}
	for name, pod := range pods {
		nodes[name] = pod.Spec.NodeName
	}
	return nodes
}

// TestANodeIsDrained takes all members off a node, as for its maintenance: of two
// there the second one waits for the first, and a primary hands over. It runs beside
// no other test, since nothing is scheduled to that node meanwhile.
func TestANodeIsDrained(t *testing.T) {
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			l := beginReplicated(t, e, 3, "")
			l.watchLabels(t)
			w := newWriter(t, l.database, l.app)
			l.drainTwo(t, w)
			l.drainPrimary(t, w)
			l.heals(t, w)
		})
	}
}

// drainTwo drains a node with two members. Their volumes are on it, so that the
// first has to wait for the node, and the second for the first.
func (l life) drainTwo(t *testing.T, w writer) {
	t.Helper()
	node := l.nodeWith(t, 2)
	before := l.runs(t)
	if err := l.drain(t, node, 20*time.Second); err == nil {
		t.Errorf("both members have left %s", node)
	}
	if gone := l.others(t, before); len(gone) > 1 {
		t.Errorf("at once were evicted %v", gone)
	}
	w.goesOn(t, time.Now())
	l.uncordon(t, node)
	l.waitWhole(t, 3)
}

// drainPrimary drains the node of the primary, which no other member is on.
func (l life) drainPrimary(t *testing.T, w writer) {
	t.Helper()
	node := l.nodeWith(t, 1)
	var primary string
	for name, on := range l.nodesOf(t) {
		if on == node {
			primary = name
		}
	}
	l.becomesPrimary(t, primary)
	begun := time.Now()
	if err := l.drain(t, node, 2*time.Minute); err != nil {
		t.Errorf("drain %s: %v", node, err)
	}
	l.waitPrimaryOtherThan(t, primary)
	w.goesOn(t, time.Now())
	l.expectGap(t, w, begun, "a drain of the primary's node")
	l.uncordon(t, node)
	l.waitWhole(t, 3)
}

// nodeWith is the node that has that many members.
func (l life) nodeWith(t *testing.T, count int) string {
	t.Helper()
	on := map[string]int{}
	for _, node := range l.nodesOf(t) {
		on[node]++
	}
	for node, members := range on {
		if members == count {
			return node
		}
	}
	t.Fatalf("no node has %d members: %v", count, on)
	return ""
}

// drain evicts the database's members from a node, as kubectl does, within a time.
func (l life) drain(t *testing.T, node string, limit time.Duration) error {
	t.Helper()
	t.Cleanup(func() { l.uncordon(t, node) })
	return localcluster(t.Context(), "kubectl", "--", "drain", node, "--pod-selector="+v1alpha1.LabelStem+"="+l.stem(),
		"--delete-emptydir-data", "--timeout="+limit.String())
}

func (l life) uncordon(t *testing.T, node string) {
	t.Helper()
	if err := localcluster(context.WithoutCancel(t.Context()), "kubectl", "--", "uncordon", node); err != nil {
		t.Error(err)
	}
}
