// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// prune removes what nothing refers to any more: the ConfigMaps of older
// configurations, which are never edited in place, once no pod has or could still
// get one mounted, and what only several members have.
func prune(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if len(plan.Actions) > 0 || snapshot.deploymentRolls() {
		return false
	}
	inUse := snapshot.mountedConfigs()
	isWanted := map[Ref]bool{desired.Stem.Ref: true}
	for _, child := range desired.Children {
		isWanted[child.Ref] = true
	}
	for _, ref := range slices.SortedFunc(maps.Keys(snapshot.Objects), compareRefs) {
		object := snapshot.Objects[ref]
		isPrunable := ref.Kind == KindConfigMap && !inUse[ref.Name] || ref.Kind == KindService || ref.Kind == KindDisruptionBudget
		if isPrunable && !isWanted[ref] && snapshot.isControlled(object) && object.GetDeletionTimestamp() == nil {
			plan.Actions = append(plan.Actions, Delete{Ref: ref, UID: object.GetUID()})
		}
	}
	return false
}

// mountedConfigs are the names of the ConfigMaps that pods refer to, or that a
// ReplicaSet could still make a pod with.
func (s Snapshot) mountedConfigs() map[string]bool {
	mounted := map[string]bool{}
	for _, member := range s.Members {
		addConfigs(mounted, member.Pod.Spec)
	}
	for _, pod := range s.Awaiting {
		addConfigs(mounted, pod.Spec)
	}
	for _, replicaSet := range s.ReplicaSets {
		isScaled := replicaSet.Spec.Replicas == nil || *replicaSet.Spec.Replicas > 0 || replicaSet.Status.Replicas > 0
		if isScaled {
			addConfigs(mounted, replicaSet.Spec.Template.Spec)
		}
	}
	return mounted
}

func addConfigs(mounted map[string]bool, pod corev1.PodSpec) {
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			mounted[volume.ConfigMap.Name] = true
		}
	}
}
