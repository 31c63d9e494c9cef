// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"
)

// removeVolumes deletes the volumes of members that were scaled away, where the
// spec says so: once the primary serves, every member that is wanted has its data,
// and nothing else is to be done. A member that is shut down comes back to its own.
func removeVolumes(plan *Plan, snapshot Snapshot, desired Desired) bool {
	spec := snapshot.Database.Spec
	topology := desired.Topology.Topology
	isAsked := spec.Storage != nil && spec.Storage.DeletesWhenScaled() && !spec.Shutdown
	if !isAsked || len(plan.Actions) > 0 || plan.Finding != nil || topology.State != TopologyInitialized || !snapshot.NamedServes() {
		return false
	}
	for _, ref := range slices.SortedFunc(maps.Keys(snapshot.Objects), compareRefs) {
		object := snapshot.Objects[ref]
		pod := strings.TrimPrefix(ref.Name, ClaimName(""))
		isOfMember := ref.Kind == KindVolumeClaim && ClaimStem(ref.Name) == spec.DeploymentName
		if !isOfMember || ordinalOf(pod) < int(max(desired.Members, wantedReplicas(snapshot.Database))) {
			continue
		}
		verdict := snapshot.Claimant(topology.DataID).Judge(Child{Ref: ref, IsRetained: true}, object)
		if verdict.IsOurs && object.GetDeletionTimestamp() == nil && !topology.holds(ref.Name) && !snapshot.hasPod(pod) {
			plan.Actions = append(plan.Actions, DeleteVolume{Claim: ref.Name, UID: object.GetUID(), Version: object.GetResourceVersion()})
		}
	}
	return false
}

// hasPod tells whether there is a pod of that name, whoever controls it.
func (s Snapshot) hasPod(name string) bool {
	for _, member := range s.Members {
		if member.Pod.Name == name {
			return true
		}
	}
	for _, pod := range slices.Concat(s.Awaiting, s.Strangers) {
		if pod.Name == name {
			return true
		}
	}
	return false
}
