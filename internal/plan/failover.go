// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// failoverPatience is how long the primary may be silent before another member
	// takes its place, where no acknowledged write can be lost by that: a server
	// that was killed is back by then.
	failoverPatience = 3 * time.Second
	// asyncPatience is the same where writes that weren't copied yet are lost, so
	// that its return is worth more.
	asyncPatience = 30 * time.Second
)

// failOver has another member take the place of the primary, which is away: fence
// all that may be attached to it, count, choose the most advanced, and record it.
// The next passes promote it.
func (g group) failOver(m *move, primary *peer) {
	if len(g.topology.Members) == 0 {
		// Nobody is known to have its data.
		if len(g.others()) > 0 || g.wanted > 1 {
			m.finding = &Finding{Reason: v1alpha1.ReasonSyncNotEstablished, Message: fmt.Sprintf(
				"Pod %s, the primary, is away, and no other member has all of its data: its return is waited for.", g.topology.Primary)}
		}
		return
	}
	if wait := g.patience(primary) - g.now.Sub(g.unservedSince); wait > 0 {
		m.wait = wait
		return
	}
	switch {
	case g.forced || g.topology.Required > 0:
		// It can't acknowledge anything any more once enough replicas are fenced,
		// whatever it does.
	case g.isSync:
		m.finding = g.notCaughtUp()
		return
	case primary != nil && !primary.isStopped:
		// That it can't be reached says nothing about what it tells its clients.
		m.finding = g.unreachable()
		return
	case !g.topology.IsHandingOver:
		// Whenever it starts again, it starts as a replica.
		m.topology.IsHandingOver = true
		return
	}
	if primary != nil {
		m.roles[primary.name()] = ""
	}
	if g.fence(m) {
		return
	}
	fenced := g.fenced()
	if needed := g.needed(); len(fenced) < needed {
		m.finding = g.quorumLost(fenced, needed)
		m.wait, m.isUrgent = time.Second, true
		return
	}
	best := g.mostAdvanced(fenced)
	if best == nil {
		m.finding = &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: fmt.Sprintf(
			"The primary, Pod %s, is gone, and the data of the other members can't be compared, so that none is promoted: %s. "+
				"Bring the primary back.", g.topology.Primary, strings.Join(namesOf(fenced), ", "))}
		return
	}
	m.topology = g.topology.succeeded(best, fenced)
	if g.topology.Required == 0 && !g.forced {
		m.stopped = g.topology.Primary
	}
}

// findPrimary is what is done where the record of the primary was lost, and no
// member, or more than one, says that it is it: nobody knows who has all that was
// acknowledged, until the right one answers or a human decides.
func (g group) findPrimary(m *move) {
	var writable []string
	for i := range g.peers {
		if g.peers[i].isWritable() {
			writable = append(writable, g.peers[i].name())
		}
	}
	switch {
	case len(g.peers) < 2 && g.wanted < 2:
		return // there is but one
	case len(writable) > 1:
		m.finding = &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: fmt.Sprintf(
			"Pods %s take writes, and the record of which one is the primary was lost: nothing is changed. Delete the pod and the volume claim of those that aren't.",
			strings.Join(writable, " and "))}
		return
	case !g.forced:
		m.finding = &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: fmt.Sprintf(
			"The record of which member is the primary was lost, and none that answers takes writes: none is promoted. It goes on when the primary is back. "+
				"If that is gone for good, and writes may be lost, run: kubectl annotate databasemanager %s %s=%d --overwrite",
			g.database, v1alpha1.AnnotationForceFailover, g.topology.Epoch)}
		return
	}
	if g.fence(m) {
		return
	}
	var fenced []*peer
	for i := range g.peers {
		if g.peers[i].isFenced() && g.peers[i].progress.Position != "" {
			fenced = append(fenced, &g.peers[i])
		}
	}
	if best := g.mostAdvanced(fenced); best != nil {
		m.topology = g.topology.succeeded(best, fenced)
		return
	}
	m.finding = &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: "The data of the members that answer can't be compared, so that none is promoted: bring the primary back."}
}

// patience is how long the primary's return is waited for. One that leaves, or is to
// come back as a replica, isn't, where others are known to have its data.
func (g group) patience(primary *peer) time.Duration {
	isGoing := primary != nil && primary.isLeaving || g.topology.IsHandingOver
	switch {
	case g.isToStay && !g.forced:
		return asyncPatience
	case g.topology.Required > 0 && isGoing:
		return 0
	case g.topology.Required > 0, g.forced:
		return failoverPatience
	default:
		return asyncPatience
	}
}

// notCaughtUp is said where acknowledged commits may be on the primary alone.
func (g group) notCaughtUp() *Finding {
	return &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: fmt.Sprintf(
		"Pod %s, the primary, is away, and no other member is known to have all that it acknowledged: none is promoted. It goes on when the primary "+
			"is back. If that is gone for good, and writes may be lost, run: kubectl annotate databasemanager %s %s=%d --overwrite",
		g.topology.Primary, g.database, v1alpha1.AnnotationForceFailover, g.topology.Epoch)}
}

func (g group) unreachable() *Finding {
	return &Finding{Reason: v1alpha1.ReasonPrimaryUnreachable, IsTrouble: true, Message: fmt.Sprintf(
		"Pod %s, the primary, doesn't answer, and nobody says that it has stopped: it may still take writes, which a failover would lose. "+
			"If you know that it is gone for good, run: kubectl annotate databasemanager %s %s=%d --overwrite",
		g.topology.Primary, g.database, v1alpha1.AnnotationForceFailover, g.topology.Epoch)}
}

// fence has every member that may be attached to the former primary receive
// nothing any more; true if there is one that has yet to.
func (g group) fence(m *move) bool {
	for _, other := range g.others() {
		if other.answers && other.role == v1alpha1.MemberRoleReplica && !other.isFenced() {
			m.actions = append(m.actions, Fence{other.server})
		}
	}
	m.isUrgent = len(m.actions) > 0
	if m.isUrgent {
		m.wait = urgently
	}
	return m.isUrgent
}

// fenced are the members that the topology names, on the data that it names, that
// receive nothing any more and know what they have.
func (g group) fenced() []*peer {
	var fenced []*peer
	for _, named := range g.topology.Members {
		other := g.peer(named.Name)
		if other != nil && other.holder == named.Holder && other.isFenced() && other.progress.Position != "" {
			fenced = append(fenced, other)
		}
	}
	return fenced
}

// needed is how many of them have to be.
func (g group) needed() int {
	if g.forced {
		return 1
	}
	return g.topology.needed()
}

// needed is how many of the members that may have the primary's last writes have to
// answer for one of them to take its place.
func (t Topology) needed() int {
	if t.Required == 0 {
		return 1
	}
	return neededOf(len(t.Members), t.Required)
}

func (g group) quorumLost(fenced []*peer, needed int) *Finding {
	var missing []string
	for _, named := range g.topology.Members {
		if !slices.Contains(namesOf(fenced), named.Name) {
			missing = append(missing, named.Name)
		}
	}
	return &Finding{Reason: v1alpha1.ReasonQuorumLost, IsTrouble: true, Message: fmt.Sprintf(
		"Pod %s, the primary, is away, and of the %d members that may have its last writes %d answer, of which %d are needed: none is promoted.%s "+
			"It goes on when the primary is back, or enough of them. If the primary is gone for good, and writes may be lost, run: "+
			"kubectl annotate databasemanager %s %s=%d --overwrite",
		g.topology.Primary, len(g.topology.Members), len(fenced), needed, sayAway(missing), g.database, v1alpha1.AnnotationForceFailover, g.topology.Epoch)}
}

// mostAdvanced is the one that has all that each other has; nil if there is none.
// Of several, the one that is asked for comes first, then one that stays.
func (g group) mostAdvanced(candidates []*peer) *peer {
	var best *peer
	for _, candidate := range candidates {
		hasAll := !slices.ContainsFunc(candidates, func(other *peer) bool {
			return other != candidate && !g.engine.Compare(candidate.progress.Position, other.progress.Position).Has()
		})
		if hasAll && (best == nil || g.isPreferred(candidate, best)) {
			best = candidate
		}
	}
	return best
}

func (g group) isPreferred(a, b *peer) bool {
	for _, isBetter := range []func(*peer) bool{
		func(p *peer) bool { return p.name() == g.wish() },
		func(p *peer) bool { return !p.isLeaving && ordinalOf(p.name()) < g.wanted },
		func(p *peer) bool { return !p.isOutdated },
	} {
		if isBetter(a) != isBetter(b) {
			return isBetter(a)
		}
	}
	return false
}

func namesOf(peers []*peer) []string {
	names := make([]string, 0, len(peers))
	for _, one := range peers {
		names = append(names, one.name())
	}
	return names
}

// most is how many acknowledgements a primary is told to wait for at most.
func (g group) most() int {
	if !g.isSync {
		return 0
	}
	return g.engine.MostAcknowledgements()
}
