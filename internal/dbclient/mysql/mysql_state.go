// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/plan"
)

// mysqlReplicates is how MySQL replicates. What a member is stands in its data:
//
//	takes writes  persisted super_read_only is OFF, and no source is configured
//	follows       a source is configured
//	is fenced     persisted init_replica holds mysqlFence, or no source is configured
//
// The boot script starts replication by it. Fencing leaves the source and what
// was received from it as they are, and so loses nothing.
type mysqlReplicates struct{}

// mysqlFence is what init_replica holds on a member that is to receive nothing. It
// is executed whenever the thread begins that executes what was received, and does
// nothing: no other setting is kept by the server, free in its form, and without
// effect.
const mysqlFence = "DO 'fenced'"

// mysqlEmpty is the position of a member that has no transaction.
const mysqlEmpty = "none"

// mysqlCurrentWithin is by how much a replica may be behind that has nothing to
// catch up with but what is underway.
const mysqlCurrentWithin = 10 * time.Second

// mysqlLook asks for one row. A member without a source has NULLs in it. The
// times are seconds since 1970, or 0.
const mysqlLook = `SELECT @@GLOBAL.super_read_only OR @@GLOBAL.read_only, @@GLOBAL.gtid_executed, @@GLOBAL.init_replica <> '', ` +
	`@@GLOBAL.rpl_semi_sync_replica_enabled, @@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, ` +
	`source.HOST, source.PORT, receiver.SERVICE_STATE, receiver.RECEIVED_TRANSACTION_SET, ` +
	`GTID_SUBSET(receiver.RECEIVED_TRANSACTION_SET, @@GLOBAL.gtid_executed), receiver.LAST_ERROR_NUMBER, receiver.LAST_ERROR_MESSAGE, ` +
	`applier.SERVICE_STATE, coordinator.LAST_ERROR_NUMBER, workers.error, ` +
	`UNIX_TIMESTAMP(NOW(6)), UNIX_TIMESTAMP(receiver.LAST_HEARTBEAT_TIMESTAMP), ` +
	`UNIX_TIMESTAMP(receiver.LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP), ` +
	`UNIX_TIMESTAMP(receiver.LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP), ` +
	`UNIX_TIMESTAMP(receiver.QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP), workers.committed, workers.started ` +
	`FROM (SELECT 1) AS member ` +
	`LEFT JOIN performance_schema.replication_connection_configuration AS source ON source.CHANNEL_NAME = '' ` +
	`LEFT JOIN performance_schema.replication_connection_status AS receiver ON receiver.CHANNEL_NAME = '' ` +
	`LEFT JOIN performance_schema.replication_applier_status AS applier ON applier.CHANNEL_NAME = '' ` +
	`LEFT JOIN performance_schema.replication_applier_status_by_coordinator AS coordinator ON coordinator.CHANNEL_NAME = '' ` +
	`LEFT JOIN (SELECT MAX(LAST_ERROR_NUMBER) AS error, ` +
	`MIN(IF(APPLYING_TRANSACTION = '', NULL, UNIX_TIMESTAMP(APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP))) AS committed, ` +
	`MIN(IF(APPLYING_TRANSACTION = '', NULL, UNIX_TIMESTAMP(APPLYING_TRANSACTION_START_APPLY_TIMESTAMP))) AS started ` +
	`FROM performance_schema.replication_applier_status_by_worker WHERE CHANNEL_NAME = '') AS workers ON TRUE`

// mysqlMember is what a member says of replication.
type mysqlMember struct {
	isReadOnly, isFenced, acknowledges, waits bool
	count                                     int
	executed                                  string

	// host is empty if no source is configured, and the rest says nothing then.
	host             string
	port             int32
	receiver         string
	received         string
	isDrained        bool
	receiveError     int
	receiveMessage   string
	applier          string
	executeError     int
	now, heartbeat   float64
	queuedCommitted  float64
	queuedAt         float64
	queueingSince    float64
	appliedCommitted float64
	applyingSince    float64
}

// scan reads the row.
func (m *mysqlMember) scan(rows interface{ Scan(...any) error }) error {
	var host, receiver, received, message, applier sql.NullString
	var port, receiveError, coordinatorError, workerError sql.NullInt64
	var isDrained sql.NullBool
	var times [7]sql.NullFloat64
	err := rows.Scan(&m.isReadOnly, &m.executed, &m.isFenced, &m.acknowledges, &m.waits, &m.count,
		&host, &port, &receiver, &received, &isDrained, &receiveError, &message, &applier, &coordinatorError, &workerError,
		&times[0], &times[1], &times[2], &times[3], &times[4], &times[5], &times[6])
	m.host, m.port, m.receiver, m.received, m.receiveMessage, m.applier = host.String, int32(port.Int64), receiver.String, received.String, message.String, applier.String // #nosec G115 -- a port
	m.isDrained, m.receiveError = !isDrained.Valid || isDrained.Bool, int(receiveError.Int64)
	// The coordinator only says that a worker failed, and not why.
	if m.executeError = int(workerError.Int64); m.executeError == 0 {
		m.executeError = int(coordinatorError.Int64)
	}
	m.now, m.heartbeat, m.queuedCommitted, m.queuedAt = times[0].Float64, times[1].Float64, times[2].Float64, times[3].Float64
	m.queueingSince, m.appliedCommitted, m.applyingSince = times[4].Float64, times[5].Float64, times[6].Float64
	return err
}

// follows tells whether the member is told to copy from its source.
func (m mysqlMember) follows() bool { return m.isReadOnly && m.host != "" && !m.isFenced }

func (m mysqlMember) isReceiving() bool { return m.follows() && m.receiver == "ON" }

// lag is by how much, at least, the member is behind its source; negative if that
// isn't known. What it was sent, and when, is compared in the source's own time;
// the two members' clocks are compared only while it is sent without a pause, since
// otherwise the source says each second that there is nothing more.
func (m mysqlMember) lag() time.Duration {
	heard := max(m.heartbeat, m.queuedAt, m.queueingSince)
	if !m.isReceiving() || m.applier != "ON" || heard == 0 {
		return -1
	}
	behind := 0.0
	if m.heartbeat < m.queuedAt {
		behind = m.queuedAt - m.queuedCommitted
	}
	if !m.isDrained && m.applyingSince > 0 {
		behind = max(behind, m.queuedCommitted-m.appliedCommitted, m.now-m.applyingSince)
	}
	if silence := m.now - heard; silence > mysqlCurrentWithin.Seconds() {
		behind = max(behind, silence)
	}
	if lag := time.Duration(behind * float64(time.Second)); lag >= mysqlCurrentWithin {
		return lag.Round(time.Second)
	}
	return 0
}

func (m mysqlMember) replication() plan.Replication {
	replication := plan.Replication{
		IsReceiving: m.isReceiving(), IsCurrent: m.lag() == 0,
		Acknowledges: m.follows() && m.acknowledges,
	}
	if m.follows() {
		replication.Source = m.host
		replication.IsIdle = m.receiver == "OFF" && m.receiveError == 0 || m.applier == "OFF" && m.executeError == 0
	}
	if !m.isReadOnly {
		required := plan.Acknowledgement{}
		if m.waits {
			required.Count = m.count
		}
		replication.Required = required.String()
	}
	if m.isReadOnly && m.host != "" {
		replication.Failure, replication.IsApart = m.failure()
	}
	return replication
}

func (m mysqlMember) progress() plan.Progress {
	var parts []string
	for _, part := range []string{m.executed, m.received} {
		if part != "" {
			parts = append(parts, strings.ReplaceAll(part, "\n", ""))
		}
	}
	position := mysqlEmpty
	if len(parts) > 0 {
		position = strings.Join(parts, ",")
	}
	return plan.Progress{Position: position, IsDrained: m.isDrained, Lag: m.lag()}
}

// failure says why a member doesn't receive or execute, and whether its data and
// its source's have parted.
func (m mysqlMember) failure() (failure string, isApart bool) {
	if m.applier != "ON" {
		switch m.executeError {
		case 0:
			return "it doesn't execute what it has received", false
		case 1007, 1008, 1032, 1050, 1051, 1054, 1060, 1061, 1062, 1091, 1146, 1396:
			// What is to be changed isn't there, or what is to be made is.
			return fmt.Sprintf("what it has received doesn't fit its data (error %d)", m.executeError), true
		default:
			return fmt.Sprintf("it can't execute what it has received (error %d)", m.executeError), false
		}
	}
	if m.isFenced || m.receiver == "ON" {
		return "", false
	}
	switch {
	case m.receiveError == 0 && m.receiver == "CONNECTING":
		return "", false
	case m.receiveError == 0:
		return "it doesn't copy from its source", false
	case m.receiveError == 1045:
		return "its source refuses its password", false
	case m.receiveError >= 2000 && m.receiveError < 3000:
		return "its source can't be reached", false
	case m.receiveError == 13114 && strings.Contains(m.receiveMessage, "more GTIDs"):
		return "it has transactions that its source lacks", true
	case m.receiveError == 13114 && strings.Contains(m.receiveMessage, "purged"):
		return "its source no longer has what it lacks", true
	default:
		return fmt.Sprintf("it can't copy from its source (error %d)", m.receiveError), false
	}
}

// query asks for all in one round trip.
func (mysqlReplicates) query(state string) string {
	return state + "; " + mysqlLook + "; SHOW REPLICAS"
}

// read reads what comes after the state. A server that was started without the
// plug-ins, by an older boot script, doesn't replicate.
func (mysqlReplicates) read(rows *sql.Rows, state *plan.EngineState) error {
	if !rows.NextResultSet() {
		var answer *driver.MySQLError
		if errors.As(rows.Err(), &answer) && answer.Number == mysqlUnknownVariable {
			return nil
		}
		return orNoRows(rows.Err())
	}
	if !rows.Next() {
		return orNoRows(rows.Err())
	}
	var member mysqlMember
	if err := member.scan(rows); err != nil {
		return err
	}
	state.Replication, state.Progress = member.replication(), member.progress()
	if !rows.NextResultSet() {
		return orNoRows(rows.Err())
	}
	var followers []string
	for rows.Next() {
		var follower string
		var ignored sql.RawBytes
		if err := rows.Scan(&ignored, &follower, &ignored, &ignored, &ignored); err != nil {
			return err
		}
		followers = append(followers, follower)
	}
	slices.Sort(followers)
	state.Replication.Followers = strings.Join(slices.Compact(followers), ",")
	return rows.Err()
}

const mysqlUnknownVariable = 1193

// orNoRows is an error where an answer is missing and there is none.
func orNoRows(err error) error {
	if err == nil {
		return sql.ErrNoRows
	}
	return err
}
