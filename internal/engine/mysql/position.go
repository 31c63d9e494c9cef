// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// EmptyPosition is the position of a member that has no transaction, and knows
// that it has none.
const EmptyPosition = "none"

// Compare tells how what one member has relates to what another one has. A
// position is a set of GTIDs as the server writes it, in which a transaction may
// occur twice, or EmptyPosition:
//
//	3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:11:tag:1-3, 4a6f2a67-…:1
func (Engine) Compare(position, other string) plan.Order {
	a, isSet := parseGTIDs(position)
	b, isOtherSet := parseGTIDs(other)
	if !isSet || !isOtherSet {
		return plan.OrderUnknown
	}
	switch hasAll, otherHasAll := a.contains(b), b.contains(a); {
	case hasAll && otherHasAll:
		return plan.OrderSame
	case hasAll:
		return plan.OrderAhead
	case otherHasAll:
		return plan.OrderBehind
	default:
		return plan.OrderApart
	}
}

// interval is a range of transaction numbers, both ends included.
type interval struct{ first, last int64 }

// gtids is a set of transactions: for each source, and each tag of it, the
// intervals of their numbers, in order and with gaps between them.
type gtids map[string][]interval

// parseGTIDs reads a set; false if it isn't one.
func parseGTIDs(text string) (gtids, bool) {
	set := gtids{}
	if text == EmptyPosition {
		return set, true
	}
	for part := range strings.SplitSeq(text, ",") {
		if !set.add(strings.Trim(part, " \n")) {
			return nil, false
		}
	}
	for source, intervals := range set {
		set[source] = merge(intervals)
	}
	return set, true
}

// add takes what is known of one source into the set. A tag is of the intervals
// that follow it.
func (g gtids) add(text string) bool {
	source, rest, hasMore := strings.Cut(text, ":")
	if !hasMore || !isUUID(source) {
		return false
	}
	key, isTagOpen := source, false
	for part := range strings.SplitSeq(rest, ":") {
		if part = strings.TrimSpace(part); isTag(part) {
			if isTagOpen {
				return false
			}
			key, isTagOpen = source+":"+part, true
			continue
		}
		read, isInterval := parseInterval(part)
		if !isInterval {
			return false
		}
		g[key], isTagOpen = append(g[key], read), false
	}
	return !isTagOpen
}

func parseInterval(text string) (interval, bool) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	read := interval{number(first), number(last)}
	return read, read.first > 0 && read.first <= read.last
}

// number reads a transaction's number; 0 if it isn't one.
func number(text string) int64 {
	read, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.HasPrefix(text, "+") || read == math.MaxInt64 {
		return 0
	}
	return read
}

// isUUID tells whether it is one as the server writes it.
func isUUID(text string) bool {
	groups := strings.Split(text, "-")
	lengths := []int{8, 4, 4, 4, 12}
	if len(groups) != len(lengths) {
		return false
	}
	for i, group := range groups {
		if len(group) != lengths[i] || strings.Trim(group, "0123456789abcdef") != "" {
			return false
		}
	}
	return true
}

// isTag tells whether it is the tag of a transaction, which begins with no digit.
func isTag(text string) bool {
	const letters = "_abcdefghijklmnopqrstuvwxyz"
	return text != "" && len(text) <= 32 && strings.Contains(letters, text[:1]) && strings.Trim(text, letters+"0123456789") == ""
}

// merge puts intervals in order, and joins those between which nothing is missing.
func merge(intervals []interval) []interval {
	slices.SortFunc(intervals, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	merged := intervals[:1]
	for _, next := range intervals[1:] {
		if last := &merged[len(merged)-1]; next.first <= last.last+1 {
			last.last = max(last.last, next.last)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

// contains tells whether all of the other set is in this one.
func (g gtids) contains(other gtids) bool {
	for source, intervals := range other {
		for _, wanted := range intervals {
			if !slices.ContainsFunc(g[source], func(has interval) bool { return has.first <= wanted.first && wanted.last <= has.last }) {
				return false
			}
		}
	}
	return true
}
