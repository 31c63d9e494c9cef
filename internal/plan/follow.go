// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// serve is what is done while the primary takes writes.
func (g group) serve(m *move, primary *peer) {
	if g.handOver(m, primary) || g.noteWish(m, primary) {
		return
	}
	members := g.nextMembers()
	for _, other := range g.others() {
		g.join(m, primary, other, slices.Contains(members, TopologyMember{Name: other.name(), Holder: other.holder}))
	}
	g.acknowledge(m, primary, members)
}

// join has a member follow the primary, or has it copy the primary's data first
// where it has something that the primary lacks: that was never acknowledged, or
// lost before, and is merged with nothing.
func (g group) join(m *move, primary, other *peer, stays bool) {
	// Nobody has a say that isn't recorded to have one.
	isNamed := stays && g.topology.has(other)
	kind := g.engine.Acknowledging()
	switch {
	case other.isLeaving || !other.answers || other.role != v1alpha1.MemberRoleReplica:
		return
	case !isNamed && kind == ByAttachment:
		// One that is to be named is named first; one that isn't any more is detached.
		if !stays && !other.isFenced() {
			m.actions = append(m.actions, Fence{other.server})
		}
		return
	case g.follows(other) && other.replication.IsApart:
		g.copyAnew(m, other)
		return
	case g.follows(other):
		acknowledges := isNamed && g.isSync
		if other.replication.IsIdle || kind == ByReplica && other.replication.Acknowledges != acknowledges {
			m.actions = append(m.actions, Follow{Server: other.server, Source: g.source(acknowledges)})
		}
		return
	}
	// What is compared stays as it is: a member that follows somebody else may get
	// more at any moment.
	if !other.isFenced() {
		m.actions = append(m.actions, Fence{other.server})
		m.isUrgent, m.wait = true, urgently
		return
	}
	switch order := g.engine.Compare(other.progress.Position, primary.progress.Position); {
	case order == OrderSame, order == OrderBehind, order == OrderUnknown && kind == ByAttachment:
		// A primary that was started again has a history of its own there, and whoever
		// comes without it copies all.
		m.actions = append(m.actions, Follow{Server: other.server, Source: g.source(isNamed && g.isSync)})
		m.isUrgent, m.wait = true, urgently
	case order != OrderUnknown && primary.askedAt.After(other.askedAt):
		g.copyAnew(m, other)
	default:
		m.isUrgent, m.wait = true, urgently
	}
}

// copyAnew has a member give up its data for the primary's, at its next start. What
// it is told names this very run of it, so that it is obeyed once.
func (g group) copyAnew(m *move, other *peer) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", other.server.Pod.UID, other.server.RunID))
	token := hex.EncodeToString(sum[:6])
	if g.topology.Clones[other.name()] != token {
		m.topology = m.topology.withClone(other.name(), token)
		return
	}
	m.actions = append(m.actions, Evict{Pod: other.name(), UID: other.server.Pod.UID, Why: "its data have parted from the primary's, and are copied anew"})
}

// acknowledge settles whose acknowledgement a commit can rest on, and how many it
// needs. What is recorded is never stronger than what may be in effect.
func (g group) acknowledge(m *move, primary *peer, wanted []TopologyMember) {
	target := g.topology
	target.Members, target.Required = wanted, acknowledgementsOf(len(wanted), g.most())
	if m.finding == nil {
		m.finding = g.isEstablished(target)
	}

	weakest := m.topology
	weakest.Members = union(g.topology.Members, wanted)
	weakest.Required = min(g.topology.Required, target.Required)
	// Besides who is new, that is on what data somebody is who was named before it existed.
	if !slices.Equal(weakest.Members, g.topology.Members) || weakest.Required < g.topology.Required {
		m.topology = weakest
		return
	}
	if required := g.required(target.Members); waitsFor(primary) != required.String() {
		if g.canRequire(primary, target) {
			m.actions = append(m.actions, Require{Server: primary.server, Required: required})
			m.isUrgent, m.wait = true, urgently
		}
		return
	}
	if slices.Equal(target.Members, g.topology.Members) && target.Required == g.topology.Required {
		return
	}
	if g.isDetached(target) && g.hasCaughtUp(primary, target) {
		m.topology.Members, m.topology.Required = target.Members, target.Required
		return
	}
	m.isUrgent, m.wait = true, urgently
}

// nextMembers are those that may acknowledge from now on: those that are named and
// stay, and those that are current, or may be attached.
func (g group) nextMembers() []TopologyMember {
	var members []TopologyMember
	for _, named := range g.topology.Members {
		other := g.peer(named.Name)
		isLost := other != nil && other.holder != named.Holder && other.holder != "" && named.Holder != ""
		if !isLost && ordinalOf(named.Name) < g.wanted {
			if named.Holder == "" && other != nil {
				named.Holder = other.holder
			}
			members = append(members, named)
		}
	}
	if g.engine.Acknowledging() == ByAttachment {
		return g.withAllNames(members)
	}
	for _, other := range g.others() {
		isNew := !slices.ContainsFunc(members, func(named TopologyMember) bool { return named.Name == other.name() })
		if isNew && g.isCurrent(other) && !other.isLeaving && other.holder != "" && ordinalOf(other.name()) < g.wanted {
			members = append(members, TopologyMember{Name: other.name(), Holder: other.holder})
		}
	}
	slices.SortFunc(members, func(a, b TopologyMember) int { return byOrdinal(a.Name, b.Name) })
	return members
}

// withAllNames adds every member that is wanted, whether it exists or not: it may
// acknowledge from the moment on that it is attached.
func (g group) withAllNames(members []TopologyMember) []TopologyMember {
	for ordinal := range g.wanted {
		name := g.nameOf(ordinal)
		isNamed := slices.ContainsFunc(members, func(named TopologyMember) bool { return named.Name == name })
		if isNamed || name == g.topology.Primary {
			continue
		}
		added := TopologyMember{Name: name}
		if other := g.peer(name); other != nil {
			added.Holder = other.holder
		}
		members = append(members, added)
	}
	slices.SortFunc(members, func(a, b TopologyMember) int { return byOrdinal(a.Name, b.Name) })
	return members
}

// canRequire tells whether the primary can be told what to wait for: as long as
// it has never waited, enough have to be there, so that a database that is still
// being made takes writes.
func (g group) canRequire(primary *peer, target Topology) bool {
	if target.Required == 0 || waitsFor(primary) != (Acknowledgement{}).String() {
		return true
	}
	current := 0
	for _, named := range target.Members {
		if other := g.peer(named.Name); other != nil && g.isCurrent(other) {
			current++
		}
	}
	return current >= target.Required
}

// waitsFor is what the primary waits for, by its own account.
func waitsFor(primary *peer) string {
	return cmp.Or(primary.replication.Required, (Acknowledgement{}).String())
}

// isDetached tells whether nobody acknowledges any more that isn't named in target.
func (g group) isDetached(target Topology) bool {
	for _, named := range g.topology.Members {
		isStaying := slices.Contains(target.Members, named)
		other := g.peer(named.Name)
		if isStaying || other == nil || other.holder != named.Holder || g.engine.Acknowledging() == ByName {
			continue
		}
		if !other.answers || !other.isFenced() && (g.engine.Acknowledging() == ByAttachment || other.replication.Acknowledges) {
			return false
		}
	}
	return true
}

// hasCaughtUp tells whether enough of those that are named in target have what the
// primary had once it waited for them: from then on, each commit that was ever
// acknowledged is on as many of them as the record is going to say.
func (g group) hasCaughtUp(primary *peer, target Topology) bool {
	count := 0
	for _, named := range target.Members {
		other := g.peer(named.Name)
		if other == nil || !g.follows(other) || other.holder != named.Holder {
			continue
		}
		if g.engine.Compare(other.progress.Position, primary.progress.Position).Has() {
			count++
		}
	}
	return count >= target.Required
}

// isEstablished says what is still missing of the replication; nil if nothing is.
func (g group) isEstablished(target Topology) *Finding {
	var missing []string
	for ordinal := range g.wanted {
		name := g.nameOf(ordinal)
		other := g.peer(name)
		if name != g.topology.Primary && (other == nil || !g.isCurrent(other)) {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case g.isSync && len(target.Members) == 0:
		return &Finding{Reason: v1alpha1.ReasonSyncNotEstablished, Message: "No replica has the primary's data yet: commits rest on the primary alone." + sayAway(missing)}
	default:
		return &Finding{Reason: v1alpha1.ReasonReplicaBehind, Message: "Not every replica has the primary's data." + sayAway(missing)}
	}
}

// nameOf is the name of the member with an ordinal.
func (g group) nameOf(ordinal int) string {
	return fmt.Sprintf("%s%d", strings.TrimRight(g.topology.Primary, "0123456789"), ordinal)
}
