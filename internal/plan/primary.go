// SPDX-License-Identifier: Apache-2.0

package plan

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
