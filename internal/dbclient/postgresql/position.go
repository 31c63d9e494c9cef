// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// lsn is a place in the log of changes: how many bytes were written before it.
type lsn uint64

// String has the server's own form.
func (l lsn) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// parseLSN reads a place as the server writes it; false if there is none.
func parseLSN(text string) (lsn, bool) {
	highText, lowText, _ := strings.Cut(text, "/")
	high, highErr := strconv.ParseUint(highText, 16, 32)
	low, lowErr := strconv.ParseUint(lowText, 16, 32)
	return lsn(high<<32 | low), highErr == nil && lowErr == nil
}

// way is how a member came to its timeline. It never changes for a timeline, and
// is asked for once.
type way struct {
	system   string
	timeline uint32
	// passed are the timelines before, with the places where they were left.
	passed []passedTimeline
}

type passedTimeline struct {
	timeline uint32
	end      lsn
}

// to is the position of a member that came that way to a place: the engine
// compares it.
func (w way) to(place lsn) string {
	var text strings.Builder
	text.WriteString(w.system)
	for _, part := range w.passed {
		fmt.Fprintf(&text, " %d@%s", part.timeline, part.end)
	}
	fmt.Fprintf(&text, " %d@%s", w.timeline, place)
	return text.String()
}

// endOf is where a timeline was left on the way; false if it wasn't come to.
func (w way) endOf(timeline uint32) (lsn, bool) {
	for _, part := range w.passed {
		if part.timeline == timeline {
			return part.end, true
		}
	}
	return 0, false
}

// identify asks for the timeline that the member executes, or writes, and how far
// it is there: received or executed. No function of SQL gives that on a replica.
func (c *Connection) identify(ctx context.Context) (system string, timeline uint32, place lsn, err error) {
	row, err := c.askRow(ctx, "IDENTIFY_SYSTEM", 4)
	if err != nil {
		return "", 0, 0, err
	}
	number, err := strconv.ParseUint(row[1], 10, 32)
	place, isPlace := parseLSN(row[2])
	if err != nil || !isPlace || row[0] == "" {
		return "", 0, 0, errUnexpected
	}
	return row[0], uint32(number), place, nil
}

// wayTo returns the way to a timeline of a cluster, of which the server keeps a
// file.
func (c *Connection) wayTo(ctx context.Context, system string, timeline uint32) (way, error) {
	if c.way.system == system && c.way.timeline == timeline {
		return c.way, nil
	}
	found := way{system: system, timeline: timeline}
	if timeline > 1 {
		row, err := c.askRow(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", timeline), 2)
		if err != nil {
			return way{}, err
		}
		if found.passed, err = parseHistory(row[1]); err != nil {
			return way{}, err
		}
	}
	c.way = found
	return found, nil
}

// parseHistory reads the file of a timeline: a line for each that was passed,
// with its number and the place where it was left.
func parseHistory(file string) ([]passedTimeline, error) {
	var passed []passedTimeline
	for line := range strings.Lines(file) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, errUnexpected
		}
		number, err := strconv.ParseUint(fields[0], 10, 32)
		end, isPlace := parseLSN(fields[1])
		if err != nil || !isPlace {
			return nil, errUnexpected
		}
		passed = append(passed, passedTimeline{uint32(number), end})
	}
	return passed, nil
}

// askRow runs one statement that gives one row of so many columns.
func (c *Connection) askRow(ctx context.Context, statement string, columns int) ([]string, error) {
	tables, err := c.ask(ctx, statement)
	if err != nil {
		return nil, err
	}
	if len(tables) != 1 || len(tables[0]) != 1 || len(tables[0][0]) != columns {
		return nil, errUnexpected
	}
	return tables[0][0], nil
}
