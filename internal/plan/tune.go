// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// setPasswords gives the application's account the password that is in its
// Secret, where it has another one. The engine is asked, and no record kept: so
// it doesn't matter who changed which of the two, or what was interrupted.
func setPasswords(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if plan.writes(Ref{Kind: KindSecret, Name: AuthSecretName(snapshot.Database.Spec.DeploymentName)}) {
		return false
	}
	for _, member := range snapshot.Members {
		// A replica has its source's accounts, or is told itself.
		isTold := member.isPrimary() || member.Probe.Answers && !desired.CopiesAccounts
		if isTold && member.Probe.Engine.Password == PasswordDiffers && member.Pod.DeletionTimestamp == nil {
			plan.Actions = append(plan.Actions, SetPassword{member.server()})
		}
	}
	return false
}

// configure sets the parameters that a running server takes. What a member
// starts with stands in the ConfigMap of those parameters, which is written
// before.
func configure(plan *Plan, snapshot Snapshot, desired Desired) bool {
	for _, member := range snapshot.Members {
		if different := member.unlike(desired.Live); len(different) > 0 && member.Pod.DeletionTimestamp == nil {
			plan.Actions = append(plan.Actions, Configure{Server: member.server(), Settings: different})
		}
	}
	return false
}

// unlike returns the settings that the member is known to have otherwise.
func (m Member) unlike(wanted Settings) Settings {
	if !m.Probe.Answers || len(m.Probe.Settings) == 0 {
		return nil
	}
	return wanted.Without(m.Probe.Settings)
}

// growClaims asks for larger volumes. It doesn't ask how the members are: a full
// disk is what keeps one from starting.
func growClaims(plan *Plan, snapshot Snapshot, desired Desired) bool {
	for _, claim := range snapshot.boundClaims(desired) {
		size := snapshot.Database.Spec.Storage.Size
		requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if requested.Cmp(size) < 0 && claim.DeletionTimestamp == nil {
			plan.Actions = append(plan.Actions, Grow{Claim: claim.Name, UID: claim.UID, Size: size})
		}
	}
	return false
}

// boundClaims are our claims that have a volume: Kubernetes resizes no other.
func (s Snapshot) boundClaims(desired Desired) []*corev1.PersistentVolumeClaim {
	var bound []*corev1.PersistentVolumeClaim
	for _, child := range desired.Claims {
		if claim, exists := s.Objects[child.Ref].(*corev1.PersistentVolumeClaim); exists && claim.Status.Phase == corev1.ClaimBound {
			bound = append(bound, claim)
		}
	}
	return bound
}

// isGrowing names a volume that is being made larger; "" if none is.
func (s Snapshot) isGrowing(desired Desired) string {
	for _, claim := range s.boundClaims(desired) {
		requested, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
		if capacity.Cmp(requested) < 0 {
			return claim.Name
		}
	}
	return ""
}

// replaceWorkload has the StatefulSet's template of claims follow the size, once
// there is nothing else to do: the API server lets nobody change it, so another
// StatefulSet takes over the pods. Where the claims go with the StatefulSet it
// stays as it is: Kubernetes could take one for garbage meanwhile. The claims
// that it makes later are grown like any other.
func replaceWorkload(plan *Plan, snapshot Snapshot, desired Desired) bool {
	statefulSet, exists := snapshot.Objects[snapshot.workloadRef()].(*appsv1.StatefulSet)
	if len(plan.Actions) > 0 || !exists || statefulSet.DeletionTimestamp != nil || len(snapshot.Awaiting) > 0 {
		return false
	}
	size, isKnown := templateSize(statefulSet)
	if !isKnown || size.Cmp(snapshot.Database.Spec.Storage.Size) == 0 || snapshot.Database.Spec.Storage.DeletesWithDatabase() {
		return false
	}
	for _, child := range desired.Claims {
		if claim := snapshot.Objects[child.Ref]; claim != nil && len(claim.GetOwnerReferences()) > 0 {
			return false
		}
	}
	plan.Actions = append(plan.Actions, Orphan{
		Ref: snapshot.workloadRef(), UID: statefulSet.UID,
		Why: fmt.Sprintf("its claims are of %s, wanted are %s", size.String(), snapshot.Database.Spec.Storage.Size.String()),
	})
	return true
}

// templateSize is the size of the claims that a StatefulSet makes.
func templateSize(statefulSet *appsv1.StatefulSet) (resource.Quantity, bool) {
	for _, claim := range statefulSet.Spec.VolumeClaimTemplates {
		if claim.Name == DataVolume {
			return claim.Spec.Resources.Requests[corev1.ResourceStorage], true
		}
	}
	return resource.Quantity{}, false
}
