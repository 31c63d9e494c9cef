// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
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

// Position is how far a member is: at a point of its history. A member that was
// promoted, or follows one that was, began that history where it left another:
//
//	former   ────────────────┬──────▶  a primary that is gone
//	                 Former  └───────▶ history     Offset
//
// Both count in one way: Offset is at least FormerOffset.
type Position struct {
	// History and Former are 40 hexadecimal digits; Former is empty where no other
	// history is known.
	History, Former string
	// Offset and FormerOffset are numbers of bytes.
	Offset, FormerOffset uint64
}

// String has the form "HISTORY:OFFSET", or "HISTORY:OFFSET,FORMER:OFFSET".
func (p Position) String() string {
	own := fmt.Sprintf("%s:%d", p.History, p.Offset)
	if p.Former == "" {
		return own
	}
	return fmt.Sprintf("%s,%s:%d", own, p.Former, p.FormerOffset)
}

// parsePosition reads what String wrote; false if it is something else.
func parsePosition(text string) (Position, bool) {
	own, former, hasFormer := strings.Cut(text, ",")
	at, isPoint := parsePoint(own)
	position := Position{History: at.history, Offset: at.offset}
	if !isPoint || !hasFormer {
		return position, isPoint
	}
	left, isPoint := parsePoint(former)
	position.Former, position.FormerOffset = left.history, left.offset
	return position, isPoint && left.history != at.history && left.offset <= at.offset
}

func parsePoint(text string) (point, bool) {
	history, number, _ := strings.Cut(text, ":")
	offset, err := strconv.ParseUint(number, 10, 63)
	isPoint := err == nil && IsHistory(history) && strconv.FormatUint(offset, 10) == number
	return point{history, offset}, isPoint
}

// IsHistory tells whether a text names a history. The server gives one of zeros
// where there is none.
func IsHistory(text string) bool {
	const length = 40
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == "" && strings.Trim(text, "0") != ""
}

// points are the names of all that the member has: one, or two where it has
// written nothing yet since it left its former history.
func (p Position) points() []point {
	points := []point{{p.History, p.Offset}}
	if p.Former != "" && p.FormerOffset == p.Offset {
		points = append(points, point{p.Former, p.FormerOffset})
	}
	return points
}

// reaches tells whether the member has all that stands before a point.
func (p Position) reaches(other point) bool {
	return other.history == p.History && other.offset <= p.Offset ||
		other.history == p.Former && other.offset <= p.FormerOffset
}

// has tells whether the member has all that the other has.
func (p Position) has(other Position) bool {
	return slices.ContainsFunc(other.points(), p.reaches)
}

// shares tells whether a history is known of both.
func (p Position) shares(other Position) bool {
	return other.History == p.History || other.History == p.Former ||
		other.Former != "" && (other.Former == p.History || other.Former == p.Former)
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
