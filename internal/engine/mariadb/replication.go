// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

var _ plan.ReplicatingEngine = Engine{}

// MostAcknowledgements returns 1: the server can't be told to wait for more.
func (Engine) MostAcknowledgements() int { return 1 }

// DemotesAtStart returns false: a running primary is made a replica.
func (Engine) DemotesAtStart() bool { return false }

// CopiesAccounts returns false: accounts are set on each member, unlogged. A
// statement that changes an account and waits for acknowledgement keeps everybody
// from logging in meanwhile, the operator too.
func (Engine) CopiesAccounts() bool { return false }

// gtid is one transaction: its number in the history, and the server that wrote
// it first. The number 0 is of none.
type gtid struct{ server, number uint64 }

// position is what a member has. Its text is
//
//	EXECUTED/RECEIVED
//
// where EXECUTED is the last transaction of each server that ever wrote,
// separated by commas, and RECEIVED the last one that was received, if any. The
// last transaction alone doesn't tell whether two histories have parted:
//
//	0-1-100,0-2-103/   has what server 1 wrote up to 100, and then server 2
//	0-1-101/           has a transaction 101 of server 1, so it isn't behind
type position struct {
	last               map[uint64]uint64
	executed, received gtid
}

// Compare tells how the data at one position relate to those at another. The
// answer may be unknown while a member hasn't executed all that it has received.
func (Engine) Compare(a, b string) plan.Order {
	one, isKnown := parsePosition(a)
	other, isOtherKnown := parsePosition(b)
	if !isKnown || !isOtherKnown {
		return plan.OrderUnknown
	}
	has, otherHas := one.has(other.received), other.has(one.received)
	switch {
	case has == unknown || otherHas == unknown:
		return plan.OrderUnknown
	case has == yes && otherHas == yes:
		return plan.OrderSame
	case has == yes:
		return plan.OrderAhead
	case otherHas == yes:
		return plan.OrderBehind
	default:
		return plan.OrderApart
	}
}

type answer int

const (
	unknown answer = iota
	yes
	no
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

// has tells whether a transaction, and so all before it, is in a member's history.
func (p position) has(t gtid) answer {
	switch {
	case t.number == 0:
		return yes
	case t.number >= p.received.number:
		return answerOf(t == p.received)
	case t.number <= p.executed.number:
		return answerOf(p.last[t.server] >= t.number)
	default:
		// Of what was received and isn't executed the last one's server alone is
		// known. Nobody but a server that wrote before and after wrote in between.
		if p.received.server != p.executed.server || t.server != p.executed.server {
			return unknown
		}
		return yes
	}
}

func parsePosition(text string) (position, bool) {
	executed, received, hasBoth := strings.Cut(text, "/")
	if !hasBoth {
		return position{}, false
	}
	p := position{last: map[uint64]uint64{}}
	for item := range strings.SplitSeq(executed, ",") {
		t, isValid := parseGTID(item)
		if !isValid || t.number != 0 && (p.last[t.server] != 0 || t.number == p.executed.number) {
			return position{}, false
		}
		if t.number > p.executed.number {
			p.executed = t
		}
		p.last[t.server] = t.number
	}
	last, isValid := parseGTID(received)
	if !isValid || last.number == p.executed.number && last != p.executed {
		return position{}, false
	}
	// What was executed is remembered longer than what was received.
	if p.received = last; last.number < p.executed.number {
		p.received = p.executed
	}
	return p, true
}

// parseGTID reads 0-SERVER-NUMBER; nothing is the transaction 0. There is but one
// domain, 0: nobody but an administrator can write in another, and histories of
// several can't be put in order.
func parseGTID(text string) (gtid, bool) {
	if text == "" {
		return gtid{}, true
	}
	parts := strings.Split(text, "-")
	if len(parts) != 3 || parts[0] != "0" {
		return gtid{}, false
	}
	server, err := strconv.ParseUint(parts[1], 10, 32)
	number, numberErr := strconv.ParseUint(parts[2], 10, 64)
	return gtid{server, number}, err == nil && numberErr == nil && number != 0
}

// Acknowledging returns ByReplica: each is told whether it acknowledges, and the primary waits for one of them.
func (Engine) Acknowledging() plan.Acknowledging { return plan.ByReplica }
