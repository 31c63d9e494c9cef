// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// group is a replicated database as the decisions about its roles see it: what is
// recorded, what is wanted, and what was observed of the members. It knows
// nothing of objects, so that a simulator can play it by the million.
type group struct {
	// database is the name of the resource, for messages.
	database string
	engine   ReplicatingEngine
	// topology is what is recorded.
	topology Topology
	// wanted is how many members the spec asks for; 0 where it is one that has no
	// number, and nobody can follow.
	wanted int
	// isSync tells whether a commit is to be acknowledged by replicas.
	isSync bool
	// peers are the members that exist, ordered by name, those that leave and those
	// that aren't wanted any more included.
	peers []peer
	// unservedSince is since when the member that the topology names hasn't served
	// as the primary; zero if it serves.
	unservedSince time.Time
	// leavingSince is since when its pod is being deleted; zero if it isn't.
	leavingSince time.Time
	// asked is the name of the member that is asked to become the primary, whether
	// there is one of that name or not; empty if none is. mustMove tells that the
	// primary is in the way of something: another one, whichever, is to take its place.
	asked    string
	mustMove bool
	// isToStay tells that the primary is started again as the primary, and waited for.
	isToStay bool
	// forced tells that a human has said that the primary is gone for good.
	forced bool
	// host gives the host name of a member, port where it serves.
	host func(name string) string
	port int32
	now  time.Time
}

// peer is one member.
type peer struct {
	server Server
	// holder is what its data lie on.
	holder types.UID
	// answers tells whether it answers, askedAt when it did last.
	answers     bool
	askedAt     time.Time
	role        v1alpha1.MemberRole
	replication Replication
	progress    Progress
	// isLeaving is true while its pod is being deleted, isStopped if its kubelet says
	// that the server has ended.
	isLeaving, isStopped bool
	// isOutdated tells whether it has to be replaced soon.
	isOutdated bool
	// label is the role that its pod is labelled with.
	label v1alpha1.MemberRole
}

func (p *peer) name() string { return p.server.Pod.Name }

// isWritable tells whether the member answers and takes writes.
func (p *peer) isWritable() bool {
	return p != nil && p.answers && p.role == v1alpha1.MemberRolePrimary
}

// isFenced tells whether the member answers, takes no writes, and receives from
// nobody, also after a restart.
func (p *peer) isFenced() bool {
	return p.answers && p.role == v1alpha1.MemberRoleReplica && p.replication.Source == "" && !p.replication.IsReceiving
}

// ordinalOf is the number at the end of a member's name; -1 if there is none.
func ordinalOf(name string) int {
	ordinal, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return ordinal
}

// byOrdinal orders names of members.
func byOrdinal(a, b string) int {
	return cmp.Or(cmp.Compare(ordinalOf(a), ordinalOf(b)), strings.Compare(a, b))
}

// move is what to do about the roles now: first what is to be recorded, and only
// if that is recorded already, the actions.
type move struct {
	topology Topology
	// stopped is the name of a pod in which no server may run any more when that is
	// recorded; empty if it doesn't rest on that.
	stopped string
	actions []Action
	// roles are what the pods are to be labelled with, by name; those that aren't in
	// it keep theirs.
	roles map[string]v1alpha1.MemberRole
	// finding is what stands in the way, or is still to come; nil if nothing is.
	finding *Finding
	// wait is after what time to look again though nothing changes; zero if there is
	// nothing to wait for. isUrgent has the members asked again at once, too.
	wait     time.Duration
	isUrgent bool
}

// Finding is what there is to say of the replication.
type Finding struct {
	Reason, Message string
	// IsTrouble tells whether it needs help.
	IsTrouble bool
}

// urgently is how soon to look again where a member is about to say something.
const urgently = 200 * time.Millisecond

// next decides what to do about the roles.
//
//	the member that the topology names   what is done
//	takes writes                         others follow it, and are named; or it hands over
//	answers, and takes none              it is promoted; or another one is that has all of it
//	is away                              once it is given up: fence, count, choose, record
func (g group) next() move {
	m := move{topology: g.topology, roles: map[string]v1alpha1.MemberRole{}}
	g.labelReplicas(&m)
	primary := g.primary()
	switch {
	case g.topology.State != TopologyInitialized:
		return m
	case g.topology.Primary == "":
		m.roles = nil
		g.findPrimary(&m)
	case primary.isWritable():
		m.roles[primary.name()] = v1alpha1.MemberRolePrimary
		g.serve(&m, primary)
	case primary != nil && primary.answers:
		m.roles[primary.name()] = ""
		g.install(&m, primary)
	default:
		g.failOver(&m, primary)
	}
	if !m.topology.equal(g.topology) {
		m.actions = nil
		return m
	}
	if g.topology.Primary != "" {
		g.demoteStrays(&m)
	}
	return m
}

// primary is the member that the topology names, on the data that it names; nil if
// there is none.
func (g group) primary() *peer {
	found := g.peer(g.topology.Primary)
	if found == nil || g.topology.Holder == "" || found.holder != g.topology.Holder {
		return nil
	}
	return found
}

func (g group) peer(name string) *peer {
	for i := range g.peers {
		if g.peers[i].name() == name {
			return &g.peers[i]
		}
	}
	return nil
}

// others are the members besides the one that the topology names.
func (g group) others() []*peer {
	var others []*peer
	for i := range g.peers {
		if g.peers[i].name() != g.topology.Primary {
			others = append(others, &g.peers[i])
		}
	}
	return others
}

// follows tells whether a member is told to follow the primary.
func (g group) follows(p *peer) bool {
	return p.answers && p.role == v1alpha1.MemberRoleReplica && p.replication.Source == g.host(g.topology.Primary)
}

// isCurrent tells whether a member follows the primary, and has nearly all of it.
func (g group) isCurrent(p *peer) bool {
	return g.follows(p) && p.replication.IsReceiving && p.replication.IsCurrent && !p.replication.IsApart
}

// labelReplicas says which members clients may read from. One that has fallen
// silent keeps its label: its kubelet says whether it is ready. One that was
// current when the primary went has it as long as it isn't told anything else.
func (g group) labelReplicas(m *move) {
	isServed := g.primary().isWritable()
	for _, other := range g.others() {
		if !other.answers {
			continue
		}
		m.roles[other.name()] = ""
		if g.isCurrent(other) || !isServed && other.label == v1alpha1.MemberRoleReplica && g.follows(other) {
			m.roles[other.name()] = v1alpha1.MemberRoleReplica
		}
	}
}

// demoteStrays replaces members that take writes and aren't the one that the
// topology names: each starts as a replica of nobody then. One can't be told to
// in place, since commits may be underway in it that never come to an end.
func (g group) demoteStrays(m *move) {
	for _, other := range g.others() {
		if other.isWritable() && !other.isLeaving {
			m.actions = append(m.actions, Evict{Pod: other.name(), UID: other.server.Pod.UID, Why: "it takes writes, and isn't the primary any more"})
		}
	}
}

// source is the primary as another member is told of it.
func (g group) source(acknowledges bool) Source {
	return Source{Member: g.topology.Primary, Host: g.host(g.topology.Primary), Port: g.port, Acknowledges: acknowledges}
}

// required is what a primary waits for that has these replicas.
func (g group) required(members []TopologyMember) Acknowledgement {
	required := Acknowledgement{Count: acknowledgementsOf(len(members), g.most())}
	if required.Count > 0 && g.engine.Acknowledging() == ByName {
		required.Names = Topology{Members: members}.names()
	}
	return required
}

// sayAway words what is missing.
func sayAway(names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.SortFunc(names, byOrdinal)
	return fmt.Sprintf(" Missing are %s.", strings.Join(names, ", "))
}
