// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// equal tells whether two topologies say the same.
func (t Topology) equal(other Topology) bool {
	return t.State == other.State && t.Epoch == other.Epoch && t.DataID == other.DataID &&
		t.Primary == other.Primary && t.Holder == other.Holder &&
		slices.Equal(t.Members, other.Members) && t.Required == other.Required &&
		t.IsHandingOver == other.IsHandingOver && t.SwitchedTo == other.SwitchedTo && maps.Equal(t.Clones, other.Clones)
}

// names are the names of the replicas that are named.
func (t Topology) names() []string {
	names := make([]string, 0, len(t.Members))
	for _, named := range t.Members {
		names = append(names, named.Name)
	}
	return names
}

// has tells whether a member is named, with the data that it has.
func (t Topology) has(p *peer) bool {
	return slices.Contains(t.Members, TopologyMember{Name: p.name(), Holder: p.holder})
}

// holds tells whether a volume claim is that of a member that is named, or may be
// where nobody is.
func (t Topology) holds(claim string) bool {
	return t.Primary == "" || claim == ClaimName(t.Primary) || slices.ContainsFunc(t.Members, func(named TopologyMember) bool { return claim == ClaimName(named.Name) })
}

// succeeded is the topology after a failover. It names the members that were
// fenced, which have nothing that the successor lacks, or, if there is no other,
// the former primary: a database of two waits for it to return. How many of them
// have what was acknowledged before has yet to be seen.
func (t Topology) succeeded(successor *peer, fenced []*peer) Topology {
	next := t.named(successor)
	for _, other := range fenced {
		if other != successor {
			next.Members = append(next.Members, TopologyMember{Name: other.name(), Holder: other.holder})
		}
	}
	if len(next.Members) == 0 && t.Holder != "" {
		next.Members = []TopologyMember{{Name: t.Primary, Holder: t.Holder}}
	}
	return next
}

// handedTo is the topology after a handover: the former primary, which has all
// that the successor has, takes the successor's place.
func (t Topology) handedTo(successor *peer) Topology {
	next := t.named(successor)
	for _, named := range append(slices.Clone(t.Members), TopologyMember{Name: t.Primary, Holder: t.Holder}) {
		if named.Name != successor.name() {
			next.Members = append(next.Members, named)
		}
	}
	slices.SortFunc(next.Members, func(a, b TopologyMember) int { return byOrdinal(a.Name, b.Name) })
	return next
}

// named begins an epoch with another primary, and nobody else yet.
func (t Topology) named(successor *peer) Topology {
	next := Topology{
		State: t.State, Epoch: t.Epoch + 1, DataID: t.DataID,
		Primary: successor.name(), Holder: successor.holder, SwitchedTo: t.SwitchedTo, Clones: maps.Clone(t.Clones),
	}
	delete(next.Clones, successor.name())
	return next
}

// withClone is the topology by which a member copies the primary's data.
func (t Topology) withClone(name, token string) Topology {
	t.Clones = maps.Clone(t.Clones)
	if t.Clones == nil {
		t.Clones = map[string]string{}
	}
	t.Clones[name] = token
	return t
}

// union has the members of both. One whose data weren't known, and are now, is one.
func union(a, b []TopologyMember) []TopologyMember {
	both := slices.DeleteFunc(slices.Clone(a), func(named TopologyMember) bool {
		return named.Holder == "" && slices.ContainsFunc(b, func(other TopologyMember) bool { return other.Name == named.Name })
	})
	for _, named := range b {
		if !slices.Contains(both, named) {
			both = append(both, named)
		}
	}
	slices.SortFunc(both, func(a, b TopologyMember) int { return byOrdinal(a.Name, b.Name) })
	return both
}

// joinPairs and parseMembers write and read "db-1=UID db-2=UID".
func joinPairs(members []TopologyMember) string {
	var pairs []string
	for _, named := range members {
		pairs = append(pairs, named.Name+"="+string(named.Holder))
	}
	return strings.Join(pairs, " ")
}

func parseMembers(text string) []TopologyMember {
	var members []TopologyMember
	for pair := range strings.FieldsSeq(text) {
		name, holder, _ := strings.Cut(pair, "=")
		members = append(members, TopologyMember{Name: name, Holder: types.UID(holder)})
	}
	return members
}

// joinClones and parseClones write and read "db-1:TOKEN db-2:TOKEN".
func joinClones(clones map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(clones)) {
		pairs = append(pairs, name+":"+clones[name])
	}
	return strings.Join(pairs, " ")
}

func parseClones(text string) map[string]string {
	var clones map[string]string
	for pair := range strings.FieldsSeq(text) {
		if clones == nil {
			clones = map[string]string{}
		}
		name, token, _ := strings.Cut(pair, ":")
		clones[name] = token
	}
	return clones
}
