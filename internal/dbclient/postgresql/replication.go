// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// askReplication adds columns to askState. What only a replica, or only a primary,
// can say is asked of no other, and what costs something as well.
//
// The startup process is the one that executes, and knows when it has executed
// all that is there: then it waits until it is time to look again.
const askReplication = `
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_flush_lsn() END,
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_flush_lsn()) END,
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN (SELECT a.wait_event FROM pg_catalog.pg_stat_get_activity(NULL) a
		WHERE a.backend_type OPERATOR(pg_catalog.=) 'startup') END,
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_is_wal_replay_paused() END,
	pg_catalog.pg_last_wal_receive_lsn(),
	pg_catalog.current_setting('primary_conninfo'),
	pg_catalog.current_setting('synchronous_standby_names'),
	(SELECT pg_catalog.string_agg(a.application_name, ',') FROM pg_catalog.pg_stat_get_wal_senders() s, pg_catalog.pg_stat_get_activity(s.pid) a),
	r.pid, r.status, r.sender_host, r.latest_end_lsn
	FROM pg_catalog.pg_stat_get_wal_receiver() r`

const (
	replicationColumns = 12

	// exhausted is what a startup process waits for that has executed all that is
	// in the member's log, and gets nothing from anybody.
	exhausted = "RecoveryRetrieveRetryInterval"
	streaming = "streaming"
)

// answer is what a member says of replication.
type answer struct {
	// executed is how far a replica has executed, or a primary written, hasExecuted
	// whether it says so.
	executed, received       lsn
	hasExecuted, hasReceived bool
	// timeline is a primary's.
	timeline uint32
	// waitsFor is what the process waits for that executes.
	waitsFor         string
	isPaused         bool
	conninfo         string
	synchronousNames string
	attached         []string
	// hasReceiver tells whether there is a process that receives, or will when it is
	// connected with host; sourceEnd is how far that one is, as far as known.
	hasReceiver    bool
	receives       string
	host           string
	sourceEnd      lsn
	knowsSourceEnd bool
}

// parseAnswer reads the columns of askReplication.
func parseAnswer(row []string) answer {
	a := answer{
		waitsFor: row[2], isPaused: row[3] == "t", conninfo: row[5], synchronousNames: row[6],
		attached: strings.Split(row[7], ","), hasReceiver: row[8] != "" && row[9] != "waiting", receives: row[9], host: row[10],
	}
	a.executed, a.hasExecuted = parseLSN(row[0])
	a.received, a.hasReceived = parseLSN(row[4])
	a.sourceEnd, a.knowsSourceEnd = parseLSN(row[11])
	if _, err := fmt.Sscanf(row[1], "%8X", &a.timeline); err != nil {
		a.timeline = 0 // a replica's file has no name
	}
	return a
}

// isReceiving tells whether the member is connected with the source that it is
// told of, and not with a former one any more.
func (a answer) isReceiving() bool {
	return a.hasReceiver && a.receives == streaming && a.host == hostOf(a.conninfo)
}

// isExhausted tells whether all that is in the log is executed, and nothing comes.
// What may stand behind that is half a change, which the source didn't end to send:
// nobody will ever execute it.
func (a answer) isExhausted() bool { return !a.hasReceiver && a.waitsFor == exhausted }

// isDrained tells whether all that was received is executed. After a start the
// member doesn't know what it had received, until it has executed that.
func (a answer) isDrained() bool {
	return a.isExhausted() || a.hasReceived && a.hasExecuted && a.received == a.executed
}

// replicationState completes the state of a member by what it answered.
func (c *Connection) replicationState(ctx context.Context, row []string, state *plan.EngineState) error {
	a := parseAnswer(row)
	state.Replication.Followers = followers(a.attached)
	if state.Role == v1alpha1.MemberRolePrimary {
		c.pace.lose()
		state.Replication.Required = requiredBy(a.synchronousNames)
		return c.primaryProgress(ctx, a, &state.Progress)
	}
	source := hostOf(a.conninfo)
	state.Replication.Source, state.Replication.Acknowledges = source, acknowledges(a.conninfo)
	state.Replication.IsReceiving = a.isReceiving()
	state.Progress.IsDrained, state.Progress.Lag = a.isDrained(), -1
	if a.isReceiving() && a.knowsSourceEnd {
		state.Progress.Lag = c.pace.see(time.Now(), a.sourceEnd, a.executed)
	} else {
		c.pace.lose()
	}
	state.Replication.IsCurrent = c.pace.isCurrent
	way, err := c.replicaPosition(ctx, a, &state.Progress)
	if err != nil {
		return err
	}
	if source != "" && !a.isReceiving() {
		if state.Replication.IsApart, err = c.isApart(ctx, way, a.executed); err != nil {
			return err
		}
	}
	state.Replication.Failure = failure(a, state.Replication.IsApart)
	return nil
}

// failure says what is wrong with copying, in words that stay the same.
func failure(a answer, isApart bool) string {
	switch {
	case a.isPaused:
		return "it has stopped executing what it receives, until it is restarted with as much room as its source has, or told to go on"
	case isApart:
		return "its data and its source's have parted"
	case a.conninfo != "" && !a.isReceiving():
		return "it isn't connected to its source"
	default:
		return ""
	}
}

// primaryProgress says how far a primary is: what it has written to its disk.
func (c *Connection) primaryProgress(ctx context.Context, a answer, progress *plan.Progress) error {
	if !a.hasExecuted || a.timeline == 0 {
		return errUnexpected
	}
	if c.way.timeline != a.timeline {
		system, timeline, _, err := c.identify(ctx)
		if err != nil {
			return err
		}
		if _, err := c.wayTo(ctx, system, timeline); err != nil {
			return err
		}
	}
	*progress = plan.Progress{IsDrained: true}
	if c.way.timeline == a.timeline {
		progress.Position = c.way.to(a.executed)
	}
	return nil
}

// replicaPosition says how far a replica is, and returns its way there. It isn't
// known while the replica executes what it had received before it was started, or
// before the source began another timeline: it has more then than it says.
func (c *Connection) replicaPosition(ctx context.Context, a answer, progress *plan.Progress) (way, error) {
	system, timeline, place, err := c.identify(ctx)
	if err != nil {
		return way{}, err
	}
	found, err := c.wayTo(ctx, system, timeline)
	if err != nil {
		return way{}, err
	}
	switch {
	case a.isExhausted() && a.hasExecuted:
		progress.Position = found.to(a.executed)
	case a.hasReceived && a.received <= place:
		progress.Position = found.to(place)
	}
	return found, nil
}

// askNewestTimeline gives the name of the file of the last timeline that the
// member has heard of, from its source for instance.
const askNewestTimeline = `SELECT pg_catalog.max(name) FROM pg_catalog.pg_ls_dir('pg_wal') AS files(name)
	WHERE name OPERATOR(pg_catalog.~) '^[0-9A-F]{8}[.]history$'`

// isApart tells whether a replica that doesn't receive never will: it has heard of
// a timeline, and has executed more than was written before that one began.
func (c *Connection) isApart(ctx context.Context, own way, executed lsn) (bool, error) {
	row, err := c.askRow(ctx, askNewestTimeline, 1)
	if err != nil {
		return false, err
	}
	var newest uint32
	if _, err := fmt.Sscanf(row[0], "%8X", &newest); err != nil || newest <= own.timeline {
		return false, nil //nolint:nilerr // there is no such file
	}
	heard, err := c.askRow(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", newest), 2)
	if err != nil {
		return false, err
	}
	passed, err := parseHistory(heard[1])
	if err != nil {
		return false, err
	}
	end, hasPassed := way{passed: passed}.endOf(own.timeline)
	return !hasPassed || executed > end, nil
}
