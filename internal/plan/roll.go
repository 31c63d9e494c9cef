// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// rollMember replaces one member that doesn't run what is wanted. It doesn't
// wait for that member to be ready first: one that is stuck on an older
// revision only comes loose by being replaced. A Deployment rolls by itself
// when its template changes.
func rollMember(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if desired.Members == 0 {
		// They are going, and stay away.
		return false
	}
	if plan.writes(desired.Workload().Ref) {
		plan.IsRolling = len(snapshot.Members) > 0
		return true
	}
	plan.IsRolling = snapshot.workloadRolls()
	for _, member := range snapshot.inRollingOrder(desired) {
		why := snapshot.outdated(member)
		if why == "" {
			continue
		}
		plan.IsRolling = true
		if !snapshot.bringsThePassword(member, desired) && snapshot.waitsForOthers(member, desired.Topology) {
			return true
		}
		// One that is already leaving makes room by itself.
		if member.Pod.DeletionTimestamp == nil {
			plan.Actions = append(plan.Actions, Evict{Pod: member.Pod.Name, UID: member.Pod.UID, Why: why})
		}
		return true
	}
	return false
}

// inRollingOrder are the members in the order in which they are replaced: the
// replicas, those that don't answer, which nobody misses, before others, and the
// primary last, unless it is what lets the operator in to the others.
func (s Snapshot) inRollingOrder(desired Desired) []Member {
	ordered := slices.Clone(s.Members)
	rank := func(member Member) int {
		switch {
		case s.bringsThePassword(member, desired):
			return -1
		case member.Pod.Name == desired.Topology.Primary:
			return 2
		case !member.Probe.Answers:
			return 0
		default:
			return 1
		}
	}
	slices.SortStableFunc(ordered, func(a, b Member) int { return cmp.Compare(rank(a), rank(b)) })
	return ordered
}

// waitsForOthers tells whether a member has to stay for now: each of the others
// has to have the primary's data first, and the primary hands over before it goes.
func (s Snapshot) waitsForOthers(member Member, topology TopologyStep) bool {
	if len(s.Members) == 1 || !member.Probe.Answers && !IsStarted(member.Pod) {
		return false // alone, or of no use as it is
	}
	if member.Pod.Name == topology.Primary && len(topology.Members) > 0 && member.Probe.Answers && !s.haveFormerLimits() {
		return true // it hands over first
	}
	for _, other := range s.Members {
		// Without the operator's new password nobody can be asked: those that have it
		// are waited for, and the others' turn comes.
		if other.Pod.Name == member.Pod.Name || s.hasFormerPassword(member) && s.hasFormerPassword(other) {
			continue
		}
		if topology.move.roles[other.Pod.Name] == "" && (!s.hasFormerPassword(member) || !other.Probe.Answers) {
			return true
		}
	}
	return false
}

// outdated says why a member has to be replaced; "" if it doesn't.
func (s Snapshot) outdated(member Member) string {
	if s.hasFormerPassword(member) {
		return fmt.Sprintf("the password in Secret %s is newer than the member", AdminSecretName(s.Database.Spec.DeploymentName))
	}
	statefulSet, isStatefulSet := s.Objects[s.workloadRef()].(*appsv1.StatefulSet)
	if !isStatefulSet || statefulSet.Status.ObservedGeneration < statefulSet.Generation || statefulSet.Status.UpdateRevision == "" {
		return ""
	}
	revision := member.Pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	switch {
	case revision != "" && revision != statefulSet.Status.UpdateRevision:
		return fmt.Sprintf("it runs revision %s, wanted is %s", revision, statefulSet.Status.UpdateRevision)
	case member.Probe.Answers && member.Probe.Engine.HasFormerLimits && s.canTakeLesserLimits(member):
		return "it has greater limits than it is to have"
	default:
		return ""
	}
}

// haveFormerLimits tells whether members run with greater limits than they are to
// have. Those that are to have lesser ones are replaced like this:
//
//	replicas           start with what their source has, and so go on following
//	the primary        starts again as the primary, without handing over: whoever took
//	                   its place would have the former limits, and ask them of it
//	replicas           start with the lesser limits, once they have read that it has them
func (s Snapshot) haveFormerLimits() bool {
	return slices.ContainsFunc(s.Members, func(member Member) bool { return member.Probe.Answers && member.Probe.Engine.HasFormerLimits })
}

// canTakeLesserLimits tells whether another start of a member would have it take
// them: a primary's does, and a replica's once its primary has.
func (s Snapshot) canTakeLesserLimits(member Member) bool {
	if member.isPrimary() {
		return true
	}
	primary := s.soleClaimant()
	return primary != nil && !primary.Probe.Engine.HasFormerLimits && s.outdated(*primary) == ""
}

// hasFormerPassword tells whether a member's boot script set the operator's account
// from the file of an older Secret.
func (s Snapshot) hasFormerPassword(member Member) bool {
	secret := s.Objects[Ref{Kind: KindSecret, Name: AdminSecretName(s.Database.Spec.DeploymentName)}]
	return secret != nil && member.Pod.CreationTimestamp.Time.Before(issuedAt(secret))
}

// bringsThePassword tells whether a member is the primary that sets the operator's new
// password for all, where replicas have their accounts from it: until it has started
// again nobody answers the operator, so that it hands over to none, and a replica that
// is started before it goes on as it was.
func (s Snapshot) bringsThePassword(member Member, desired Desired) bool {
	return desired.CopiesAccounts && member.Pod.Name == desired.Topology.Primary && !member.Probe.Answers && s.hasFormerPassword(member)
}

// workloadRolls tells whether the workload was changed, and its controller
// hasn't carried that out. Until it has seen the change, nobody can tell which
// members run what is wanted. One that it never saw is new.
func (s Snapshot) workloadRolls() bool {
	var generation, observed int64
	switch workload := s.Objects[s.workloadRef()].(type) {
	case *appsv1.StatefulSet:
		generation, observed = workload.Generation, workload.Status.ObservedGeneration
	case *appsv1.Deployment:
		generation, observed = workload.Generation, workload.Status.ObservedGeneration
		if workload.Status.Replicas > workload.Status.UpdatedReplicas {
			return true
		}
	}
	return observed > 0 && observed < generation
}

// writes tells whether the plan changes the object.
func (p *Plan) writes(ref Ref) bool {
	for _, action := range p.Actions {
		switch action := action.(type) {
		case Create:
			if action.Child.Ref == ref {
				return true
			}
		case Apply:
			if action.Child.Ref == ref {
				return true
			}
		case Adopt:
			if action.Child.Ref == ref {
				return true
			}
		}
	}
	return false
}

// deploymentRolls tells whether the Deployment is still replacing its pods.
func (s Snapshot) deploymentRolls() bool {
	deployment, isDeployment := s.Objects[s.workloadRef()].(*appsv1.Deployment)
	if !isDeployment {
		return false
	}
	status := deployment.Status
	return status.ObservedGeneration < deployment.Generation || status.Replicas > status.UpdatedReplicas
}
