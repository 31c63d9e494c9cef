//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestReplicasReplicate leads a database of three members of each engine through
// the loss of its primary, in two ways, while an application writes: -run
// 'TestReplicasReplicate/redis' is one of them. Two at a time, since six servers
// are what a small machine has room for.
func TestReplicasReplicate(t *testing.T) {
	t.Parallel()
	turns := make(chan struct{}, 2)
	for _, e := range allEngines() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			liveReplicated(t, e)
		})
	}
}

func liveReplicated(t *testing.T, e engine) {
	t.Helper()
	n := newNode(t)
	l := beginReplicated(t, e, 3, "")
	l.watchLabels(t)
	w := newWriter(t, l.database, l.app)
	w.expectRecords(t, l.stem()+"-ro")
	l.losesItsPrimary(t, w, "kill -9 of the primary's server", func(pod *corev1.Pod) { n.kill(t, pod) })
	former := l.primary(t)
	l.losesItsPrimary(t, w, "deletion of the primary's pod without grace", func(pod *corev1.Pod) { deleteAtOnce(t, pod) })
	l.waitWhole(t, 3, former.UID)
	if env.isFull {
		l.handsOver(t, w)
	}
	w.stop(t)
	w.expectRecords(t, l.stem())
	w.expectEqual(t, l.membersUpTo(3))

	begun := time.Now()
	l.patch(t, `{"spec":{"replicas":1}}`)
	l.waitWhole(t, 1)
	record(t, "3 members to 1", time.Since(begun))
	w.expectRecords(t, l.stem())
	begun = time.Now()
	l.patch(t, `{"spec":{"replicas":3}}`)
	l.waitWhole(t, 3)
	record(t, "1 member to 3", time.Since(begun))
	w.expectRecords(t, l.stem())
	w.expectEqual(t, l.membersUpTo(3))
	l.delete(t, append(l.retained(), "PersistentVolumeClaim/data-"+l.member(1), "PersistentVolumeClaim/data-"+l.member(2))...)
}

// losesItsPrimary does something to the primary, and measures for how long nothing
// is acknowledged.
func (l life) losesItsPrimary(t *testing.T, w writer, how string, do func(primary *corev1.Pod)) {
	t.Helper()
	begun := time.Now()
	do(l.primary(t))
	w.goesOn(t, time.Now())
	l.waitWhole(t, 3)
	// The servers that were told to go may have gone on for a moment.
	w.goesOn(t, time.Now())
	record(t, "no write is acknowledged after the "+how, w.gap(t, begun))
}
