// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// point is a place in a history, which is what one primary wrote: so many bytes
// of the stream that its replicas get. Whoever is at a point has all that stands
// in the history before it, and nothing else.
type point struct {
	history string
	offset  uint64
}

// position is how far a member is: at a point of its history. A member that was
// promoted, or follows one that was, began that history where it left another:
//
//	former   ────────────────┬──────▶  a primary that is gone
//	                 former  └───────▶ own
//
// Both count in one way: the former point comes before the own, or is beside it.
// The client writes it as "HISTORY:OFFSET", or "HISTORY:OFFSET,HISTORY:OFFSET".
type position struct {
	own point
	// former has no history where no other is known.
	former point
}

// parsePosition reads a position; false if the text is something else.
func parsePosition(text string) (position, bool) {
	own, former, hasFormer := strings.Cut(text, ",")
	at, isPoint := parsePoint(own)
	if !isPoint || !hasFormer {
		return position{own: at}, isPoint
	}
	left, isPoint := parsePoint(former)
	return position{own: at, former: left}, isPoint && left.history != at.history && left.offset <= at.offset
}

func parsePoint(text string) (point, bool) {
	history, number, _ := strings.Cut(text, ":")
	offset, err := strconv.ParseUint(number, 10, 63)
	isPoint := err == nil && isHistory(history) && strconv.FormatUint(offset, 10) == number
	return point{history, offset}, isPoint
}

// isHistory tells whether a text names a history: 40 hexadecimal digits, of which
// one isn't zero.
func isHistory(text string) bool {
	const length = 40
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == "" && strings.Trim(text, "0") != ""
}

// points are the names of all that the member has: one, or two where it has
// written nothing yet since it left its former history.
func (p position) points() []point {
	if p.former.history != "" && p.former.offset == p.own.offset {
		return []point{p.own, p.former}
	}
	return []point{p.own}
}

// reaches tells whether the member has all that stands before a point.
func (p position) reaches(other point) bool {
	return other.history == p.own.history && other.offset <= p.own.offset ||
		other.history == p.former.history && other.offset <= p.former.offset
}

// has tells whether the member has all that the other has.
func (p position) has(other position) bool {
	return slices.ContainsFunc(other.points(), p.reaches)
}

// shares tells whether a history is known of both.
func (p position) shares(other position) bool {
	return other.own.history == p.own.history || other.own.history == p.former.history ||
		other.former.history != "" && (other.former.history == p.own.history || other.former.history == p.former.history)
}

// Compare tells how the data at one position relate to those at another. Of
// positions whose histories have nothing to do with each other, as far as they
// say, nothing is known. What a primary sends without being asked, to be heard of,
// counts as data.
func (Engine) Compare(position, other string) plan.Order {
	ours, isOurs := parsePosition(position)
	theirs, isTheirs := parsePosition(other)
	if !isOurs || !isTheirs || !ours.shares(theirs) {
		return plan.OrderUnknown
	}
	switch has, lacks := ours.has(theirs), !theirs.has(ours); {
	case has && lacks:
		return plan.OrderAhead
	case has:
		return plan.OrderSame
	case lacks:
		return plan.OrderApart
	default:
		return plan.OrderBehind
	}
}

// MostAcknowledgements returns more than there are members: the server has no
// bound of its own. It bounds how long writes go on without so many replicas, and
// no single write waits: that is what a client's WAIT is for.
func (Engine) MostAcknowledgements() int { return math.MaxInt32 }

// DemotesAtStart returns false: a running primary becomes a replica.
func (Engine) DemotesAtStart() bool { return false }

// CopiesAccounts returns false: each member has accounts of its own.
func (Engine) CopiesAccounts() bool { return false }

// Acknowledging returns ByAttachment: WAIT counts whoever is attached.
func (Engine) Acknowledging() plan.Acknowledging { return plan.ByAttachment }
