//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestAQuorumThatIsLostIsTold cuts the primary and one of its two replicas off, so
// that nobody knows whether the third has every acknowledged write. Writes stop,
// and go on with all of it once the two are back.
func TestAQuorumThatIsLostIsTold(t *testing.T) {
	t.Parallel()
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			l := beginReplicated(t, e, 3, v1alpha1.ReplicationModeSync)
			l.watchLabels(t)
			w := newWriter(t, l.database, l.app)
			primary := l.primary(t).Name
			away := l.replicaOf(primary)
			begun := time.Now()
			rejoin := []func(){l.isolate(t, primary), l.isolate(t, away)}
			said := message(l.waitFor(t, patience, v1alpha1.ReasonQuorumLost))
			record(t, "the loss of a quorum of "+string(e.name)+" to its status", time.Since(begun))
			l.expectSaid(t, said, primary, away, v1alpha1.AnnotationForceFailover+"=")
			for _, rejoin := range rejoin {
				rejoin()
			}
			l.heals(t, w)
		})
	}
}

// TestAnUnreachablePrimaryIsTold cuts the primary of an asynchronous database off:
// it may go on with some clients, so that nobody takes its place before a human
// says so. With it back there is one primary, and what it had that the other
// lacks is gone, as the human was told.
func TestAnUnreachablePrimaryIsTold(t *testing.T) {
	t.Parallel()
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			l := beginReplicated(t, e, 2, v1alpha1.ReplicationModeAsync)
			l.watchLabels(t)
			w := newWriter(t, l.database, l.app)
			w.stop(t)
			w.expectEqual(t, l.membersUpTo(2))
			former := l.primary(t)
			begun := time.Now()
			rejoin := l.isolate(t, former.Name)
			said := message(l.waitFor(t, patience, v1alpha1.ReasonPrimaryUnreachable))
			record(t, "an unreachable primary of "+string(e.name)+" to its status", time.Since(begun))
			epoch := l.topology(t)["epoch"]
			l.expectSaid(t, said, former.Name, v1alpha1.AnnotationForceFailover+"="+epoch)

			begun = time.Now()
			l.annotate(t, v1alpha1.AnnotationForceFailover, strconv.Quote(epoch))
			l.waitPrimaryOtherThan(t, former.Name)
			record(t, "a failover that a human forces, of "+string(e.name), time.Since(begun))
			w.expectRecords(t, l.stem())
			rejoin()
			l.waitWhole(t, 2, former.UID)
			w.expectRecords(t, l.stem())
			w.expectEqual(t, l.membersUpTo(2))
		})
	}
}

// TestASwitchoverWaitsForAReplica asks for a primary that can't get what the
// primary writes: the primary goes on, and hands over once the other has it all.
func TestASwitchoverWaitsForAReplica(t *testing.T) {
	t.Parallel()
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			l := beginReplicated(t, e, 3, v1alpha1.ReplicationModeSync)
			l.watchLabels(t)
			w := newWriter(t, l.database, l.app)
			primary := l.primary(t)
			asked := l.podOf(t, l.replicaOf(primary.Name))
			// Cut off from the primary alone, so that it answers all others. A new server
			// notices that at once; the rules stay with the pod.
			rejoin := l.isolate(t, asked.Name, primary.Status.PodIP)
			n.kill(t, asked)
			l.expectSaid(t, message(l.waitFor(t, patience, v1alpha1.ReasonReplicaBehind)), asked.Name)
			l.annotate(t, v1alpha1.AnnotationSwitchover, strconv.Quote(asked.Name))
			said := message(l.waitFor(t, patience, v1alpha1.ReasonSwitchoverWaiting))
			l.expectSaid(t, said, primary.Name)
			w.goesOn(t, time.Now())
			rejoin()
			begun := time.Now()
			if got := l.waitPrimaryOtherThan(t, primary.Name); got != asked.Name {
				t.Errorf("the primary is %s, and %s was asked for", got, asked.Name)
			}
			record(t, "a switchover of "+string(e.name)+" that waited, from when it can", time.Since(begun))
			l.heals(t, w)
		})
	}
}

// TestAFirstMemberThatIsAwayIsTold cuts the only member that has the data off while
// others are to come: nobody takes its place, and they copy them when it is back.
// Whoever is attached to a Redis counts, and is named before it has the data: there
// it is a quorum that is missing.
func TestAFirstMemberThatIsAwayIsTold(t *testing.T) {
	t.Parallel()
	for _, e := range allEngines() {
		if e.recordsTable == "" || !env.isFull && e.name != v1alpha1.DatabaseTypePostgreSQL {
			continue
		}
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			l := beginReplicated(t, e, 1, "")
			l.watchLabels(t)
			l.app.writeMany(t)
			rejoin := l.isolate(t, l.member(0))
			l.patch(t, `{"spec":{"replicas":3}}`)
			l.expectSaid(t, message(l.waitFor(t, patience, v1alpha1.ReasonSyncNotEstablished)), l.stem())
			rejoin()
			l.waitWhole(t, 3)
			l.expectMany(t, l.stem())
			for _, member := range l.membersUpTo(3) {
				l.expectMany(t, member+"."+l.stem()+"-members")
			}
		})
	}
}

// replicaOf is the first member besides the primary.
func (d database) replicaOf(primary string) string {
	if primary == d.member(0) {
		return d.member(1)
	}
	return d.member(0)
}

// expectSaid holds a message to what it has to name.
func (d database) expectSaid(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("the message doesn't say %q: %s", part, said)
		}
	}
}

// heals waits until all three members are as before, and nothing that was acknowledged is missing.
func (l life) heals(t *testing.T, w writer) {
	t.Helper()
	l.waitWhole(t, 3)
	w.goesOn(t, time.Now())
	w.stop(t)
	w.expectRecords(t, l.stem())
	w.expectEqual(t, l.membersUpTo(3))
}
