// SPDX-License-Identifier: Apache-2.0

package played

import "strings"

// Counting says which replicas a primary counts, before it tells a client that a
// commit is done.
type Counting int

const (
	// Named are those whose names the primary knows.
	Named Counting = iota
	// Willing are those that were told to acknowledge.
	Willing
	// Attached are all that receive from it.
	Attached
)

// Kind is how one engine replicates.
type Kind struct {
	// Name is for messages.
	Name   string
	Counts Counting
	// Forgets tells that a replica doesn't know its position after a restart, until
	// it has synchronised, and CopiesAll that to follow means to copy all.
	Forgets, CopiesAll bool
}

// Server is one server and its volume.
type Server struct {
	Name string

	// What follows lies on the volume, and outlives a start.

	// Holder is the identity of the volume.
	Holder  string
	HasData bool
	// Data are all commits that were received, of which the first Executed are
	// executed.
	Data      string
	Executed  int
	IsPrimary bool
	// Source is the server that this one copies from; empty if it copies from none.
	Source       string
	Acknowledges bool
	// Required is how many replicas a commit waits for, Names which ones.
	Required int
	Names    []string
	// Cloned is the last wish that the data be given up, granted.
	Cloned string

	// What follows holds until the next start.

	IsUp bool
	// Run is another one at each start.
	Run int
	// IsUnknown tells that it doesn't know its position, IsApart that what it has and
	// what its source has have parted.
	IsUnknown, IsApart bool
	// Told is the wish to give up its data that its start was told.
	Told string
	// Waiting is how many of its commits clients have heard of.
	Waiting int
}

// IsDrained tells whether all that was received is executed.
func (s *Server) IsDrained() bool { return s.Executed == len(s.Data) }

// Promote has the server take writes; false if it has yet to execute something.
func (s *Server) Promote(required int, names []string) bool {
	if !s.IsDrained() {
		return false
	}
	s.Required, s.Names = required, names
	s.IsPrimary, s.Source, s.Waiting, s.IsUnknown = true, "", len(s.Data), false
	return true
}

// Demote has the primary take no writes any more; false if a client waits.
func (s *Server) Demote() bool {
	if !s.IsPrimary || s.Waiting < len(s.Data) {
		return false
	}
	s.IsPrimary, s.Source = false, ""
	return true
}

// Fence has the server receive nothing any more.
func (s *Server) Fence() { s.Source, s.Acknowledges = "", false }

// Require sets what the primary waits for; false if the server isn't it.
func (s *Server) Require(required int, names []string) bool {
	if s.IsPrimary {
		s.Required, s.Names = required, names
	}
	return s.IsPrimary
}

// Write adds a commit; false if the server takes none.
func (s *Server) Write(commit rune) bool {
	if !s.IsUp || !s.IsPrimary || !s.IsDrained() {
		return false
	}
	s.Data += string(commit)
	s.Executed++
	return true
}

// Execute executes one commit more.
func (s *Server) Execute() {
	if s.IsUp && !s.IsDrained() {
		s.Executed++
	}
}

// Kill ends the server.
func (s *Server) Kill() { s.IsUp = false }

// Order is how the data of one server relate to those of another, in the order of
// the planner's own.
type Order int

// The orders of two servers' data.
const (
	Unknown Order = iota
	Same
	Behind
	Ahead
	Apart
)

// Compare tells how a position relates to another one; an empty one isn't known.
func Compare(position, other string) Order {
	switch {
	case position == "" || other == "":
		return Unknown
	case position == other:
		return Same
	case strings.HasPrefix(other, position):
		return Behind
	case strings.HasPrefix(position, other):
		return Ahead
	default:
		return Apart
	}
}

// Position is what Compare compares; empty while the server doesn't know it.
func (s *Server) Position() string {
	if s.IsUnknown {
		return ""
	}
	return "." + s.Data
}
