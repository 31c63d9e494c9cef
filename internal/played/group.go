// SPDX-License-Identifier: Apache-2.0

package played

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Group are the servers of one database, and the network between them.
type Group struct {
	Kind    Kind
	Servers []*Server

	cut  map[[2]string]bool
	made int
}

// NewGroup returns servers of these names that have never run, each with an empty
// volume.
func NewGroup(kind Kind, names ...string) *Group {
	g := &Group{Kind: kind, cut: map[[2]string]bool{}}
	for _, name := range names {
		g.LoseVolume(g.Add(name))
	}
	return g
}

// Add adds a server that has never run, and has no volume.
func (g *Group) Add(name string) *Server {
	added := &Server{Name: name}
	g.Servers = append(g.Servers, added)
	return added
}

// Find is the server of a name; nil if there is none.
func (g *Group) Find(name string) *Server {
	for _, server := range g.Servers {
		if server.Name == name {
			return server
		}
	}
	return nil
}

// LoseVolume ends a server, and gives it an empty volume.
func (g *Group) LoseVolume(server *Server) {
	g.made++
	*server = Server{Name: server.Name, Holder: fmt.Sprintf("v%d", g.made)}
}

// Cut has two servers reach each other no more, or again.
func (g *Group) Cut(a, b *Server, isCut bool) {
	if a != b {
		g.cut[[2]string{a.Name, b.Name}], g.cut[[2]string{b.Name, a.Name}] = isCut, isCut
	}
}

// IsCut tells whether two servers don't reach each other.
func (g *Group) IsCut(a, b *Server) bool { return g.cut[[2]string{a.Name, b.Name}] }

// IsAttached tells whether a server receives from another.
func (g *Group) IsAttached(replica, source *Server) bool {
	return replica != source && !g.IsCut(replica, source) && replica.IsUp && source.IsUp &&
		replica.HasData && !replica.IsPrimary && !replica.IsApart && replica.Source == source.Name
}

// Orders are what the topology tells a server at its start.
type Orders struct {
	// MayBePrimary lets it start as the primary, if it was it.
	MayBePrimary bool
	// Clone is a wish that it give up its data; empty if there is none.
	Clone string
	// MayMake lets one without data make a database, MayJoin start with nothing, if it
	// copies all from whom it follows.
	MayMake, MayJoin bool
}

// Start does what a boot script does. One that has no data, and may neither make
// them nor start without, stays down, and waits for CopyData.
func (g *Group) Start(server *Server, orders Orders) {
	g.made++
	server.Run, server.IsUp, server.IsApart = g.made, false, false
	if orders.Clone != "" && orders.Clone != server.Cloned {
		server.HasData, server.Told = false, orders.Clone
	}
	if server.IsPrimary && !orders.MayBePrimary {
		server.IsPrimary, server.Source = false, ""
	}
	server.IsUnknown = g.Kind.Forgets && !server.IsPrimary
	if server.HasData {
		server.IsUp, server.Waiting = true, len(server.Data)
		if server.IsPrimary {
			server.Executed = len(server.Data)
		}
		return
	}
	if orders.MayMake || g.Kind.CopiesAll && orders.MayJoin {
		server.IsUp, server.HasData, server.Data, server.Executed, server.IsPrimary, server.Source, server.IsUnknown = true, true, "", 0, false, "", !orders.MayMake
		server.Cloned = cmp.Or(server.Told, server.Cloned)
	}
}

// CopyData lets a server that waits for data get those of another one, if it is
// reached.
func (g *Group) CopyData(server, source *Server) bool {
	if server.IsUp || server.HasData || g.Kind.CopiesAll || source == nil || source == server || g.IsCut(server, source) || !source.IsUp || !source.HasData {
		return false
	}
	g.made++
	server.HasData, server.Data, server.Executed = true, source.Data[:source.Executed], source.Executed
	server.IsPrimary, server.Source, server.Acknowledges, server.Required, server.Names = false, source.Name, false, 0, nil
	server.Cloned, server.Told = cmp.Or(server.Told, server.Cloned), ""
	server.Run, server.IsUp, server.IsApart, server.IsUnknown, server.Waiting = g.made, true, false, false, len(server.Data)
	return true
}

// Follow has a server copy from another one; false if it is a primary.
func (g *Group) Follow(server *Server, source string, acknowledges bool) bool {
	if server.IsPrimary {
		return false
	}
	if server.Source != source && g.Kind.CopiesAll {
		server.IsUnknown = true
	}
	server.Source, server.Acknowledges, server.IsApart = source, acknowledges, false
	return true
}

// Replicate lets a replica receive one commit more; false if nothing came.
func (g *Group) Replicate(server *Server) bool {
	source := g.Find(server.Source)
	if source == nil || !g.IsAttached(server, source) {
		return false
	}
	if g.Kind.CopiesAll && server.IsUnknown {
		if source.IsUnknown {
			return false
		}
		server.Data, server.Executed, server.IsUnknown = source.Data, len(source.Data), false
		return true
	}
	sent := source.Data
	if !source.IsPrimary {
		sent = sent[:source.Executed]
	}
	switch {
	case len(server.Data) < len(sent) && strings.HasPrefix(sent, server.Data):
		server.Data = sent[:len(server.Data)+1]
		return true
	case !strings.HasPrefix(sent, server.Data) && !strings.HasPrefix(server.Data, sent):
		if g.Kind.CopiesAll {
			server.IsUnknown = true
		} else {
			server.IsApart = true
		}
		return true
	}
	return false
}

// IsCurrent tells whether a replica has nearly all that its source has.
func (g *Group) IsCurrent(server *Server) bool {
	source := g.Find(server.Source)
	return source != nil && g.IsAttached(server, source) && !server.IsUnknown && len(server.Data)+1 >= len(source.Data)
}

// Counted is how many replicas a primary counts, of those that have more than a
// number of commits.
func (g *Group) Counted(primary *Server, have int) int {
	counted := 0
	for _, other := range g.Servers {
		counts := g.IsAttached(other, primary) && len(other.Data) > have && !other.IsUnknown
		switch g.Kind.Counts {
		case Named:
			counts = counts && slices.Contains(primary.Names, other.Name)
		case Willing:
			counts = counts && other.Acknowledges
		case Attached:
		}
		if counts {
			counted++
		}
	}
	return counted
}

// Acknowledge lets a primary tell a client of its next commit, if so many replicas
// have it that it counts; false if it can't.
func (g *Group) Acknowledge(primary *Server, required int) bool {
	if !primary.IsUp || !primary.IsPrimary || primary.Waiting >= len(primary.Data) || g.Counted(primary, primary.Waiting) < required {
		return false
	}
	primary.Waiting++
	return true
}
