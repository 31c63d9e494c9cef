// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// handoverPatience is how long a primary that was demoted waits for its successor
// to have all of it; then it is promoted again. For wishPatience of that nobody
// takes its place but who is asked for: another one may have all of it sooner.
const (
	handoverPatience = 10 * time.Second
	wishPatience     = 3 * time.Second
)

// ServesOn is how long a member that was asked to stop goes on serving: time for its
// address to leave the Services, and for a handover. Where the primary hands over by
// that very stop, it is the last of its Service's addresses and doesn't leave: it
// loses its label so much earlier that nobody connects to a pod that is gone, which
// takes seconds to fail, where a Service with no address refuses at once.
const (
	ServesOn  = 5 * time.Second
	closesFor = 700 * time.Millisecond
)

// wish is the member that is asked to become the primary; empty if none is, if it
// has become it since it was asked, or if no member has that name.
func (g group) wish() string {
	ordinal := ordinalOf(g.asked)
	if g.asked == g.topology.SwitchedTo || ordinal < 0 || ordinal >= g.wanted || g.asked != g.nameOf(ordinal) {
		return ""
	}
	return g.asked
}

// noteWish records that what was asked for is done, so that it counts once; true if
// that has yet to be recorded.
func (g group) noteWish(m *move, primary *peer) bool {
	if g.asked == "" || g.asked == primary.name() {
		m.topology.SwitchedTo = g.asked
	}
	return m.topology.SwitchedTo != g.topology.SwitchedTo
}

// wantsHandover tells whether another member is to become the primary.
func (g group) wantsHandover(primary *peer) bool {
	isAsked := g.wish() != "" && g.wish() != primary.name()
	return isAsked || g.mustMove || primary.isLeaving && !g.isToStay || ordinalOf(primary.name()) >= g.wanted && g.wanted > 0
}

// successor is the member that becomes the primary when the primary hands over:
// the one that is asked for, or else one that is current; nil if there is none.
func (g group) successor(primary *peer) *peer {
	var best *peer
	for _, named := range g.topology.Members {
		candidate := g.peer(named.Name)
		isFit := candidate != nil && candidate.holder == named.Holder && !candidate.isLeaving && ordinalOf(named.Name) < g.wanted
		if !isFit || !g.isCurrent(candidate) || g.wish() != "" && g.wish() != primary.name() && g.wish() != named.Name {
			continue
		}
		if best == nil || g.isPreferred(candidate, best) {
			best = candidate
		}
	}
	return best
}

// handOver has the primary stop taking writes, so that another one can take its
// place with all of them; true if it is to.
func (g group) handOver(m *move, primary *peer) bool {
	if !g.wantsHandover(primary) {
		if g.topology.IsHandingOver {
			m.topology.IsHandingOver = false
		}
		return g.topology.IsHandingOver
	}
	if len(g.others()) == 0 && len(g.topology.Members) == 0 {
		return false
	}
	if g.engine.DemotesAtStart() && g.topology.IsHandingOver && primary.isLeaving && g.now.Sub(g.leavingSince) >= ServesOn-closesFor {
		m.roles[primary.name()] = ""
	}
	if g.successor(primary) == nil {
		m.finding = &Finding{Reason: v1alpha1.ReasonSwitchoverWaiting, Message: fmt.Sprintf(
			"Another member is to take the place of Pod %s, and none has all of its data yet.", primary.name())}
		// Where it leaves already, its replicas have lost their source just now; what
		// they have is seen once it has started again.
		m.topology.IsHandingOver = g.topology.IsHandingOver && primary.isLeaving
		return false
	}
	m.isUrgent, m.wait = true, urgently
	switch {
	case !g.engine.DemotesAtStart():
		m.actions = append(m.actions, Demote{primary.server})
	case !g.topology.IsHandingOver:
		// Its next start makes a replica of it.
		m.topology.IsHandingOver = true
	case !primary.isLeaving:
		m.actions = append(m.actions, Evict{Pod: primary.name(), UID: primary.server.Pod.UID, Why: "another member becomes the primary"})
	}
	return true
}

// install makes the member that the topology names the primary: it answers, and
// takes no writes. If it has been demoted in order to hand over, another one that
// has all of its data takes its place instead.
func (g group) install(m *move, primary *peer) {
	if g.isInHandover(primary) && g.now.Sub(g.unservedSince) < handoverPatience {
		m.isUrgent, m.wait = true, urgently
		if successor := g.heir(primary); successor != nil {
			m.topology = g.topology.handedTo(successor)
		}
		return
	}
	if g.topology.IsHandingOver {
		m.topology.IsHandingOver = false
		return
	}
	m.isUrgent, m.wait = true, urgently
	if primary.progress.IsDrained && !primary.isLeaving {
		m.actions = append(m.actions, Promote{Server: primary.server, Required: g.required(g.topology.Members)})
	}
}

// isInHandover tells whether the primary, which takes no writes, is meant to be
// succeeded, and can be. One that was replaced for it has no other reason to be,
// once it is back.
func (g group) isInHandover(primary *peer) bool {
	return (g.wantsHandover(primary) || g.topology.IsHandingOver) && len(g.topology.Members) > 0 && primary.isFenced()
}

// heir is a member that has all that the former primary has, which takes no writes
// any more; nil if there is none yet.
func (g group) heir(primary *peer) *peer {
	var best *peer
	isAsked := g.wish() != "" && g.wish() != primary.name() && g.now.Sub(g.unservedSince) < wishPatience
	for _, named := range g.topology.Members {
		candidate := g.peer(named.Name)
		isFit := candidate != nil && candidate.answers && candidate.holder == named.Holder && candidate.role == v1alpha1.MemberRoleReplica && !candidate.isLeaving
		if !isFit || isAsked && g.wish() != named.Name || !g.engine.Compare(candidate.progress.Position, primary.progress.Position).Has() {
			continue
		}
		if best == nil || g.isPreferred(candidate, best) {
			best = candidate
		}
	}
	return best
}
