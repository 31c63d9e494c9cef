// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// isReplicated tells whether there are roles to decide about: more than one member
// is asked for, exists, or is named. A Deployment's pod may exist beside the one that
// takes its place.
func (s Snapshot) isReplicated(topology Topology) bool {
	return wantedReplicas(s.Database) > 1 || len(topology.Members) > 0 || s.isDurable() && len(s.Members) > 1
}

// isSync tells whether commits are to be acknowledged by replicas: what the spec
// says, and by default where there are enough to bear the loss of one.
func (s Snapshot) isSync() bool {
	if replication := s.Database.Spec.Replication; replication != nil && replication.Mode != "" {
		return replication.Mode == v1alpha1.ReplicationModeSync
	}
	return wantedReplicas(s.Database) >= 3
}

// group is the snapshot as the decisions about roles see it.
func (s Snapshot) group(topology Topology, engine Engine, now time.Time) group {
	database := s.Database
	stem := database.Spec.DeploymentName
	g := group{
		database: database.Name, engine: engine, topology: topology,
		wanted: int(wantedReplicas(database)), isSync: s.isSync(),
		unservedSince: s.UnservedSince, leavingSince: s.LeavingSince,
		asked:  database.Annotations[v1alpha1.AnnotationSwitchover],
		forced: database.Annotations[v1alpha1.AnnotationForceFailover] == strconv.FormatInt(topology.Epoch, 10),
		host:   func(name string) string { return name + "." + MembersDomain(stem, database.Namespace) },
		port:   engine.Port(), now: now,
	}
	if s.workloadRef().Kind == KindDeployment {
		g.wanted = 0 // none of its pods has a number, and none follows another
	}
	outdated := 0
	for _, member := range s.Members {
		g.peers = append(g.peers, s.peerOf(member))
		if g.peers[len(g.peers)-1].isOutdated {
			outdated++
		}
	}
	primary := g.primary()
	g.isToStay = s.haveFormerLimits()
	g.mustMove = primary != nil && primary.isOutdated && outdated == 1 && len(topology.Members) > 0 && !g.isToStay
	return g
}

func (s Snapshot) peerOf(member Member) peer {
	return peer{
		server: member.server(), holder: s.holderOf(member),
		answers: member.Probe.Answers, askedAt: member.Probe.At,
		role: member.Probe.Engine.Role, replication: member.Probe.Engine.Replication, progress: member.Probe.Engine.Progress,
		isLeaving: member.Pod.DeletionTimestamp != nil, isStopped: member.isBetweenStarts(), isOutdated: s.outdated(member) != "",
		label: v1alpha1.MemberRole(member.Pod.Labels[v1alpha1.LabelRole]),
	}
}

// MembersDomain is the domain of the members' own names: POD.DOMAIN is where a
// member is found, whatever its address.
func MembersDomain(stem, namespace string) string {
	return MembersServiceName(stem) + "." + namespace + ".svc"
}

// MembersServiceName is the name of the headless Service.
func MembersServiceName(stem string) string { return stem + "-members" }

// move decides about the roles of the members under a topology that is recorded.
func (s Snapshot) move(topology Topology, engine Engine, now time.Time) move {
	spec := s.Database.Spec
	if spec.Suspend || spec.Shutdown || topology.State != TopologyInitialized {
		return move{topology: topology}
	}
	return s.group(topology, engine, now).next()
}

// NamedServes tells whether the member that the topology names takes writes.
func (s Snapshot) NamedServes() bool {
	named := s.named()
	return named != nil && named.isPrimary()
}

// HasSuccessors tells whether as many members answer as have to for one of them to
// take the place of the member that the topology names.
func (s Snapshot) HasSuccessors() bool {
	recorded, problem := s.recallTopology()
	if problem != nil {
		return false
	}
	answering := 0
	for _, member := range s.Members {
		isNamed := func(named TopologyMember) bool {
			return named.Name == member.Pod.Name && named.Holder == s.holderOf(member)
		}
		if member.Probe.Answers && slices.ContainsFunc(recorded.Members, isNamed) {
			answering++
		}
	}
	return len(recorded.Members) > 0 && answering >= recorded.needed()
}

// NamedLeaves tells whether the pod of the member that the topology names is being
// deleted.
func (s Snapshot) NamedLeaves() bool {
	named := s.named()
	return named != nil && named.Pod.DeletionTimestamp != nil
}

// named is the member that the topology names, on the data that it names; nil if
// there is none.
func (s Snapshot) named() *Member {
	recorded, problem := s.recallTopology()
	if problem != nil {
		return nil
	}
	for i, member := range s.Members {
		if member.Pod.Name == recorded.Primary && s.holderOf(member) == recorded.Holder {
			return &s.Members[i]
		}
	}
	return nil
}

// size is how many members the workload is to run: one until there are data, since
// each that is empty would make its own; then those that are wanted, once the
// first takes writes; and those that the topology still needs, until they have
// handed over.
func (s Snapshot) size(topology Topology, engine Engine) int32 {
	wanted := wantedReplicas(s.Database)
	if topology.State != TopologyInitialized || s.workloadRef().Kind == KindDeployment {
		return 1 // the number at the end of a Deployment's pod counts nothing
	}
	needed := max(int32(ordinalOf(topology.Primary))+1, 1)
	for _, named := range topology.Members {
		needed = max(needed, int32(ordinalOf(named.Name))+1)
	}
	statefulSet, exists := s.Objects[s.workloadRef()].(*appsv1.StatefulSet)
	if !exists || statefulSet.Spec.Replicas == nil {
		return max(wanted, needed)
	}
	current := *statefulSet.Spec.Replicas
	if current < wanted && current > 0 && !s.NamedServes() {
		return max(current, needed)
	}
	if engine.Acknowledging() == ByAttachment && current > 0 && int(wanted) > len(topology.Members)+1 {
		return max(min(current, wanted), needed) // they are named first
	}
	return max(wanted, needed)
}

// settleRoles carries out what was decided about the roles, once the topology and
// the marks on the volumes are written.
func settleRoles(plan *Plan, snapshot Snapshot, desired Desired) bool {
	topology := desired.Topology.Topology
	if topology.State != TopologyInitialized || plan.writes(snapshot.topologyRef()) || plan.writesAny(desired.Claims) {
		return false
	}
	plan.Actions = append(plan.Actions, desired.Topology.move.actions...)
	return len(desired.Topology.move.actions) > 0
}

// labelMembers says on the pods who is what, before any Service asks for it. A pod
// that has ended isn't the primary's any more.
func labelMembers(plan *Plan, snapshot Snapshot, desired Desired) bool {
	if desired.Members <= 1 && !snapshot.isReplicated(desired.Topology.Topology) {
		return false
	}
	for _, member := range snapshot.Members {
		role, isDecided := desired.Topology.move.roles[member.Pod.Name]
		if isDecided && role != v1alpha1.MemberRole(member.Pod.Labels[v1alpha1.LabelRole]) {
			plan.Actions = append(plan.Actions, Label{
				Pod: PodRef{Name: member.Pod.Name, UID: member.Pod.UID}, Version: member.Pod.ResourceVersion, Role: role,
			})
		}
	}
	for _, pod := range snapshot.Ended {
		if pod.Labels[v1alpha1.LabelRole] == string(v1alpha1.MemberRolePrimary) {
			plan.Actions = append(plan.Actions, Label{Pod: PodRef{Name: pod.Name, UID: pod.UID}, Version: pod.ResourceVersion})
		}
	}
	return false
}
