// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

var _ plan.ReplicatingEngine = Engine{}

// A position is how far a member is, and on which way it got there:
//
//	7412345678901234567 1@0/3000148 2@0/5000000 4@0/6000060
//
// is of the cluster with that identifier. Its history went on timeline 1 until
// 0/3000148, where a promotion began timeline 2, and so on; the member is at
// 0/6000060 on timeline 4. Where two members were on one timeline, they had the
// same there, as far as both got.
type position struct {
	system uint64
	// parts are in order of time; the last is where the member is.
	parts []part
}

// part is what was written on one timeline: up to end.
type part struct {
	timeline uint32
	end      uint64
}

// parsePosition reads a position; false if the text is none.
func parsePosition(text string) (position, bool) {
	fields := strings.Split(text, " ")
	system, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil || len(fields) == 1 {
		return position{}, false
	}
	read := position{system: system}
	for _, field := range fields[1:] {
		next, isPart := parsePart(field)
		if !isPart {
			return position{}, false
		}
		if before := len(read.parts) - 1; before >= 0 && (next.timeline <= read.parts[before].timeline || next.end < read.parts[before].end) {
			return position{}, false
		}
		read.parts = append(read.parts, next)
	}
	return read, true
}

// parsePart reads TIMELINE@LSN, where a place in the log has the server's form.
func parsePart(text string) (part, bool) {
	timelineText, place, _ := strings.Cut(text, "@")
	highText, lowText, _ := strings.Cut(place, "/")
	timeline, timelineErr := strconv.ParseUint(timelineText, 10, 32)
	high, highErr := strconv.ParseUint(highText, 16, 32)
	low, lowErr := strconv.ParseUint(lowText, 16, 32)
	return part{uint32(timeline), high<<32 | low}, cmp.Or(timelineErr, highErr, lowErr) == nil && timeline > 0
}

// Compare follows both ways until they part. Two that left one timeline at
// different places have parted, and so have those that left it at the same place
// for different ones: also one that was promoted has something of its own by that.
// Members of different clusters have nothing in common.
//
// What it can't see: two members that were promoted at the same place, neither
// knowing of the other, begin timelines of the same number. The planner keeps
// that from happening, as it promotes none that hasn't followed the primary of the
// last epoch.
func (Engine) Compare(one, other string) plan.Order {
	a, isPosition := parsePosition(one)
	b, isOtherPosition := parsePosition(other)
	if !isPosition || !isOtherPosition {
		return plan.OrderUnknown
	}
	if a.system != b.system {
		return plan.OrderApart
	}
	for i := range min(len(a.parts), len(b.parts)) {
		here, there := a.parts[i], b.parts[i]
		isLast, isOtherLast := i == len(a.parts)-1, i == len(b.parts)-1
		switch {
		case here.timeline != there.timeline:
			return plan.OrderApart
		case isLast && isOtherLast:
			return plan.OrderOf(here.end, there.end)
		case isLast:
			return orderToPassed(here.end, there.end)
		case isOtherLast:
			return orderToPassed(there.end, here.end).Inverse()
		case here.end != there.end:
			return plan.OrderApart
		}
	}
	return plan.OrderUnknown // not reached: one of them is at its last part before
}

// orderToPassed is the order of a member that is at a place on a timeline to one
// that left it for another at passed.
func orderToPassed(place, passed uint64) plan.Order {
	if place > passed {
		return plan.OrderApart
	}
	return plan.OrderBehind
}

// MostAcknowledgements is as many as there are: the server counts them all.
func (Engine) MostAcknowledgements() int { return math.MaxInt }

// DemotesAtStart is true: a server that takes writes does so until it is stopped.
func (Engine) DemotesAtStart() bool { return true }

// CopiesAccounts is true: a replica is a copy, block for block.
func (Engine) CopiesAccounts() bool { return true }

// Acknowledging returns ByName: the primary knows whom it waits for.
func (Engine) Acknowledging() plan.Acknowledging { return plan.ByName }
