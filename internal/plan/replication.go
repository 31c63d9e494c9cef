// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Source is the member that another one copies from.
type Source struct {
	// Member is the name of its pod, Host the name under which it is found, which
	// stays the same when its address changes: never that of the moving Service.
	Member, Host string
	Port         int32
	// Acknowledges tells whether the commits of the source may rest on what the
	// replica has received. A replica that is still catching up has no say.
	Acknowledges bool
}

// Acknowledgement says what a primary waits for before a client hears that its
// commit is done: that Count of the members Names have it on their disks. None is
// asked where Count is 0.
type Acknowledgement struct {
	Count int
	// Names are names of pods, in order.
	Names []string
}

// String has the form "2 of db-1,db-2,db-3", or "none", by which two are compared.
func (a Acknowledgement) String() string {
	if a.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %s", a.Count, strings.Join(slices.Sorted(slices.Values(a.Names)), ","))
}

// Replication is what a member says of copying from another one. It is
// comparable, and holds nothing that changes while nothing happens.
type Replication struct {
	// Source is the host that the member is told to copy from, now and after a
	// restart; empty if it is told of none, as a primary and a fenced member are.
	Source string
	// IsReceiving tells whether it is connected to its source, and follows.
	IsReceiving bool
	// IsCurrent tells whether it has nearly all that its source has: it receives,
	// and has nothing to catch up with but what is underway.
	IsCurrent bool
	// IsIdle is true if it is told to copy, and doesn't try to: somebody has stopped
	// it, or it wasn't started.
	IsIdle bool
	// Acknowledges tells whether the source's commits may rest on it, as far as the
	// member itself decides that.
	Acknowledges bool
	// IsApart is true if the engine says that the member's data and its source's
	// have parted: it can't follow without being made anew.
	IsApart bool
	// Failure is why it doesn't receive or apply, in words for users that stay the
	// same while the cause does; empty if nothing is wrong.
	Failure string
	// Required is, of a primary, what it waits for, as Acknowledgement.String writes
	// it. Names count only where the engine knows them: elsewhere it is "2 of ".
	Required string
	// Followers are the names of the pods that are attached to this member,
	// in order, separated by commas, whether they acknowledge or not.
	Followers string
}

// Progress is how far a member is. It changes all the time, and is no news.
type Progress struct {
	// Position is all that the member has, received or executed, in a form that its
	// engine compares; empty if the member doesn't know, as a Redis replica after a
	// restart: what isn't known never ranks.
	Position string
	// IsDrained tells whether all that was received is executed.
	IsDrained bool
	// Lag is by how much, at least, the member is behind its source; zero if it is
	// current, and negative if nobody can tell.
	Lag time.Duration
}

// Order is how the data of one member relate to those of another.
type Order int

// The orders of two members' data.
const (
	// OrderUnknown is of positions that aren't known, or can't be compared.
	OrderUnknown Order = iota
	// OrderSame: each has what the other has.
	OrderSame
	// OrderBehind: the other has all that this one has, and more.
	OrderBehind
	// OrderAhead: this one has all that the other has, and more.
	OrderAhead
	// OrderApart: each has something that the other lacks.
	OrderApart
)

// Has tells whether a member with that order to another has all that the other has.
func (o Order) Has() bool { return o == OrderSame || o == OrderAhead }

// Inverse is the order of the other to this one.
func (o Order) Inverse() Order {
	switch o {
	case OrderBehind:
		return OrderAhead
	case OrderAhead:
		return OrderBehind
	default:
		return o
	}
}

// OrderOf is the order of two numbers in one history.
func OrderOf[N cmp.Ordered](a, b N) Order {
	switch cmp.Compare(a, b) {
	case -1:
		return OrderBehind
	case 1:
		return OrderAhead
	default:
		return OrderSame
	}
}

// ReplicatingEngine is what the planner needs to know of how an engine
// replicates. An implementation is pure.
type ReplicatingEngine interface {
	// Compare tells how the data at one position relate to those at another.
	Compare(position, other string) Order

	// MostAcknowledgements is the greatest number of replicas that a primary can be
	// told to wait for.
	MostAcknowledgements() int

	// Acknowledging tells how a replica comes to have a say in commits.
	Acknowledging() Acknowledging

	// DemotesAtStart tells whether a primary becomes a replica by a start of its
	// container, and in no other way.
	DemotesAtStart() bool

	// CopiesAccounts tells whether a replica gets its accounts from its source; if
	// it doesn't, each member is told a new password.
	CopiesAccounts() bool
}

// Acknowledging says how a replica comes to have a say in its primary's commits.
type Acknowledging int

const (
	// ByName says that the primary knows by name whom it waits for.
	ByName Acknowledging = iota
	// ByReplica says that each replica is told whether it acknowledges; the primary counts.
	ByReplica
	// ByAttachment says that whoever is attached to the primary acknowledges.
	ByAttachment
)

// What a boot script is told by its environment, besides TopologyStateVariable.
// All but the last come from the topology as it was when the container started;
// each is absent where the topology is, and in a database that never has but one
// member.
const (
	// TopologyPrimaryVariable holds the name of the pod that the topology names as
	// the primary. A member that has the primary's role in its data, and isn't it,
	// starts as a replica of nobody; one without data copies them from it.
	TopologyPrimaryVariable = "TOPOLOGY_PRIMARY"
	// TopologyCloneVariable holds "POD:TOKEN" for each member that is to give up its
	// data and copy the primary's, separated by blanks. A member that has done so
	// keeps the token in /data/cloned, and does nothing the next time.
	TopologyCloneVariable = "TOPOLOGY_CLONE"
	// MembersDomainVariable holds the domain of the members' names: POD.DOMAIN is
	// where a member is found. It is absent in a database that has but one member,
	// and isn't prepared for more.
	MembersDomainVariable = "MEMBERS_DOMAIN"
)
