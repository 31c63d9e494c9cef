// SPDX-License-Identifier: Apache-2.0

package plan

// appointPrimary promotes the member that the topology names, once the topology
// and the mark on its volume are written.
func appointPrimary(plan *Plan, snapshot Snapshot, desired Desired) bool {
	topology := desired.Topology.Topology
	if topology.State != TopologyInitialized || plan.writes(snapshot.topologyRef()) || plan.writesAny(desired.Claims) {
		return false
	}
	for _, member := range snapshot.Members {
		isNamed := member.Pod.Name == topology.Primary && snapshot.holderOf(member) == topology.Holder
		if !isNamed || !member.Probe.Answers || member.isPrimary() || member.Pod.DeletionTimestamp != nil {
			continue
		}
		plan.Actions = append(plan.Actions, Promote{Server: member.server()})
		return true
	}
	return false
}

// server is the server that answered in the member's pod.
func (m Member) server() Server {
	return Server{Pod: PodRef{Name: m.Pod.Name, UID: m.Pod.UID}, RunID: m.Probe.Engine.RunID}
}

// replaceWaiting replaces a member that found its volume empty when it mustn't
// be, once the topology permits it to make data. Its container would be started
// again by itself, but after a pause that grows to minutes.
func replaceWaiting(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if desired.Topology.State != TopologyNew || plan.writes(snapshot.topologyRef()) {
		return false
	}
	for _, member := range snapshot.Members {
		if member.saysNoData() && member.isBetweenStarts() && member.Pod.DeletionTimestamp == nil {
			plan.Actions = append(plan.Actions, Evict{Pod: member.Pod.Name, UID: member.Pod.UID, Why: "it may make its data now"})
			return true
		}
	}
	return false
}

// writesAny tells whether the plan changes one of the objects.
func (p *Plan) writesAny(children []Child) bool {
	for _, child := range children {
		if p.writes(child.Ref) {
			return true
		}
	}
	return false
}
