//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writer is a client that goes on writing numbered records through the Service,
// and keeps those that the database has acknowledged. It runs in the client's pod:
// what happens to the cluster's control plane doesn't keep it from writing.
type writer struct {
	client
	stem string
}

// writeScript writes until the file /tmp/stop is there: $1 is what writes a record.
// A record that failed isn't tried again, since it may be there all the same.
const writeScript = `rm -f /tmp/stop /tmp/stopped
number=0
while [ ! -e /tmp/stop ]; do
	number=$((number + 1))
	if sh -c "$1" record "$number" >/dev/null 2>/tmp/refused; then
		echo "$number $(date +%s%N)" >>/tmp/acknowledged
	fi
	sleep 0.1
done
touch /tmp/stopped`

// startScript leaves what it starts behind; nothing but the writer's files is told
// of it.
const startScript = `export SCRIPT="$1"; shift; setsid sh -c "$@" </dev/null >/dev/null 2>&1 &`

// acknowledgement is a record that the database has acknowledged, and when.
type acknowledgement struct {
	record int
	at     time.Time
}

// newWriter begins to write to a database that takes writes, and waits for the
// first acknowledgement.
func newWriter(t *testing.T, d database, c client) writer {
	t.Helper()
	if c.recordsTable != "" {
		c.ask(t, c.recordsTable+"SELECT 1")
	}
	w := writer{c, d.stem()}
	if _, err := w.run(t.Context(), nil, "sh", "-c", startScript, "start", w.script, writeScript, "write", w.recordScript); err != nil {
		t.Fatalf("start a writer: %v", err)
	}
	w.goesOn(t, time.Now())
	return w
}

// acknowledged are the records in the order in which they were acknowledged.
func (w writer) acknowledged(ctx context.Context) ([]acknowledgement, error) {
	content, err := w.run(ctx, nil, "sh", "-c", "cat /tmp/acknowledged 2>/dev/null || true")
	if err != nil {
		return nil, err
	}
	var all []acknowledgement
	for line := range strings.Lines(content) {
		var record int
		var at int64
		if _, err := fmt.Sscan(line, &record, &at); err != nil {
			return nil, fmt.Errorf("of the acknowledged: %q: %w", line, err)
		}
		all = append(all, acknowledgement{record, time.Unix(0, at)})
	}
	return all, nil
}

// goesOn waits until some records were acknowledged that were begun after a moment.
func (w writer) goesOn(t *testing.T, since time.Time) {
	t.Helper()
	const some = 3
	eventually(t, patience, "writes that go on", func(ctx context.Context) error {
		all, err := w.acknowledged(ctx)
		if err != nil {
			return err
		}
		if later := len(all) - countUntil(all, since); later <= some {
			refused, _ := w.run(ctx, nil, "sh", "-c", "cat /tmp/refused /tmp/warning 2>/dev/null || true")
			return fmt.Errorf("%d were acknowledged, %d since; the last says: %s", len(all), later, refused)
		}
		return nil
	})
}

// countUntil counts those that were acknowledged up to a moment.
func countUntil(all []acknowledgement, moment time.Time) int {
	count := 0
	for _, one := range all {
		if !one.at.After(moment) {
			count++
		}
	}
	return count
}

// gap is for how long nothing was acknowledged, at most, since a moment.
func (w writer) gap(t *testing.T, since time.Time) time.Duration {
	t.Helper()
	all, err := w.acknowledged(t.Context())
	if err != nil {
		t.Fatalf("read what was acknowledged: %v", err)
	}
	return longest(all, since)
}

// longest is the greatest distance of two acknowledgements, of which the later one
// came after a moment.
func longest(all []acknowledgement, since time.Time) time.Duration {
	var gap time.Duration
	for i := 1; i < len(all); i++ {
		if all[i].at.After(since) {
			gap = max(gap, all[i].at.Sub(all[i-1].at))
		}
	}
	return gap
}

// stop ends the writing.
func (w writer) stop(t *testing.T) {
	t.Helper()
	if _, err := w.run(t.Context(), nil, "touch", "/tmp/stop"); err != nil {
		t.Fatalf("stop a writer: %v", err)
	}
	eventually(t, patience, "a writer that stops", func(ctx context.Context) error {
		_, err := w.run(ctx, nil, "test", "-e", "/tmp/stopped")
		return err
	})
}

// records reads, in order, the records that a host has.
func (c client) records(ctx context.Context, host string) ([]int, error) {
	command := []string{"timeout", "20", "sh", "-c", strings.ReplaceAll(c.script, "$(cat /credentials/host)", host), "client"}
	answer, err := c.run(ctx, nil, append(command, c.recordsQuery...)...)
	if err != nil {
		return nil, err
	}
	var records []int
	for field := range strings.FieldsSeq(answer) {
		record, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s answers %q", host, answer)
		}
		records = append(records, record)
	}
	slices.Sort(records)
	return records, nil
}

// expectRecords waits until a Service of the database gives every record that was
// acknowledged so far, and fails the test if it doesn't.
func (w writer) expectRecords(t *testing.T, service string) {
	t.Helper()
	all, err := w.acknowledged(t.Context())
	if err != nil {
		t.Fatalf("read what was acknowledged: %v", err)
	}
	eventually(t, 30*time.Second, "all acknowledged records on "+service, func(ctx context.Context) error {
		records, err := w.records(ctx, service+"."+w.namespace+".svc")
		if err != nil {
			return err
		}
		if missing := lacking(records, all); len(missing) > 0 {
			return fmt.Errorf("of %d acknowledged records it lacks %v", len(all), missing)
		}
		return nil
	})
}

// lacking are the acknowledged records that aren't among those that are there, at
// most ten of them.
func lacking(records []int, all []acknowledgement) []int {
	var missing []int
	for _, one := range all {
		if _, isThere := slices.BinarySearch(records, one.record); !isThere && len(missing) < 10 {
			missing = append(missing, one.record)
		}
	}
	return missing
}

// expectEqual waits until all members have the same records.
func (w writer) expectEqual(t *testing.T, members []string) {
	t.Helper()
	eventually(t, time.Minute, "members that are equal", func(ctx context.Context) error {
		var first []int
		for i, member := range members {
			records, err := w.records(ctx, fmt.Sprintf("%s.%s-members.%s.svc", member, w.stem, w.namespace))
			switch {
			case err != nil:
				return err
			case i == 0:
				first = records
			case !slices.Equal(records, first):
				return fmt.Errorf("%s has %d records, and %s has %d", members[0], len(first), member, len(records))
			}
		}
		return nil
	})
}
