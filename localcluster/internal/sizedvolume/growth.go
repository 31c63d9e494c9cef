// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/localcluster/internal/volumes"
)

// step is what the growth of a volume needs next.
//
//	      request > capacity              capacity is the request
//	none ────────────────────▶ grow ───────────────────────────────▶ finish ──▶ none
//	      the claim says that it is       the claim has the capacity,
//	      being resized                   and says nothing of resizing
type step int

const (
	none step = iota
	// grow the disk, and then say so on the volume.
	grow
	// finish by saying on the claim what its volume has.
	finish
)

// nextStep compares a bound claim's request, its volume's capacity and what the claim says of it.
func nextStep(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) step {
	capacity := volume.Spec.Capacity.Storage()
	switch {
	case claim.Status.Phase != corev1.ClaimBound:
		return none
	case claim.Spec.Resources.Requests.Storage().Cmp(*capacity) > 0:
		return grow
	case claim.Status.Capacity.Storage().Cmp(*capacity) < 0 || isResizing(claim):
		return finish
	default:
		return none
	}
}

func isResizing(claim *corev1.PersistentVolumeClaim) bool {
	_, inStatus := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	return inStatus || slices.ContainsFunc(claim.Status.Conditions, tellsOfResizing)
}

func tellsOfResizing(condition corev1.PersistentVolumeClaimCondition) bool {
	return condition.Type == corev1.PersistentVolumeClaimResizing || condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending
}

// resizing is the claim with what external-resizer writes on it before it grows a volume.
func resizing(claim *corev1.PersistentVolumeClaim, now metav1.Time) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	status := &claim.Status
	status.AllocatedResources = withStorage(status.AllocatedResources, *claim.Spec.Resources.Requests.Storage())
	if status.AllocatedResourceStatuses == nil {
		status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	status.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimControllerResizeInProgress
	if !slices.ContainsFunc(status.Conditions, tellsOfResizing) {
		status.Conditions = append(status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	return claim
}

// resized is the claim with what external-resizer writes on it when its volume has that capacity.
func resized(claim *corev1.PersistentVolumeClaim, capacity resource.Quantity) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	status := &claim.Status
	status.Capacity = withStorage(status.Capacity, capacity)
	status.AllocatedResources = withStorage(status.AllocatedResources, capacity)
	delete(status.AllocatedResourceStatuses, corev1.ResourceStorage)
	status.Conditions = slices.DeleteFunc(status.Conditions, tellsOfResizing)
	return claim
}

func withStorage(list corev1.ResourceList, quantity resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[corev1.ResourceStorage] = quantity
	return list
}

// claimOf is the name of a volume's claim. A volume that isn't one of ours on this node, or is on its way out, has none.
func claimOf(volume *corev1.PersistentVolume, node string) (namespace, name string, ok bool) {
	isOurs := volume.Annotations[provisionedByAnnotation] == Name && volume.Annotations[volumes.NodeAnnotation] == node
	if claim := volume.Spec.ClaimRef; isOurs && claim != nil && volume.Status.Phase == corev1.VolumeBound {
		return claim.Namespace, claim.Name, true
	}
	return "", "", false
}
