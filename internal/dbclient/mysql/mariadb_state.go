// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"cmp"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/plan"
)

// mariaDBReplicates is how MariaDB replicates. The role of a member, and whom it
// copies from, stand in the one row of database_manager.member, which no other
// member gets; the boot script has the server do what it says at each start. What
// the server itself keeps of its source is no more than a means.
type mariaDBReplicates struct{}

// currentWithin is by how much a replica may be behind that has nothing to catch
// up with but what is underway: writes that take long to execute are behind when
// they are done.
const currentWithin = 10 * time.Second

// query asks for all in one round trip, in this order: the answers are of
// different forms. The row comes last, since its table may be missing.
func (mariaDBReplicates) query(state string) string {
	return "BEGIN NOT ATOMIC " + state + "; " + mariaDBResults + "; END"
}

const (
	mariaDBSettings = `SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos, @@GLOBAL.rpl_semi_sync_slave_enabled, ` +
		`@@GLOBAL.rpl_semi_sync_master_enabled, @@GLOBAL.rpl_semi_sync_master_wait_no_slave, ` +
		`CONCAT(@@GLOBAL.rpl_semi_sync_master_timeout), @@GLOBAL.rpl_semi_sync_master_wait_point, @@GLOBAL.read_only NOT IN ('OFF', '0')`
	mariaDBResults = mariaDBSettings + "; SHOW SLAVE STATUS; SHOW SLAVE HOSTS; " + mariaDBRow
	mariaDBRow     = `SELECT role, host, port, acknowledges FROM database_manager.member WHERE id = 1`
)

// mariaDBMember is what a member says of replication.
type mariaDBMember struct {
	history, executed               string
	acknowledges, waits, waitsAlone bool
	timeout, waitPoint              string
	isReadOnly                      bool
	slave                           map[string]string
	followers                       []string
	row                             mariaDBRole
}

// mariaDBRole is the row.
type mariaDBRole struct {
	role, host   string
	port         int32
	acknowledges bool
}

// Errors that say that there is no such row, or that a script made its table which
// knew of no replication.
const (
	noTable  = 1146
	noColumn = 1054
)

func (mariaDBReplicates) read(rows *sql.Rows, state *plan.EngineState) error {
	if !rows.NextResultSet() {
		return cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	member, err := readMariaDB(rows)
	if err != nil {
		return err
	}
	state.Replication, state.Progress = member.replication(), member.progress()
	return nil
}

// readMariaDB reads the results of mariaDBSettings and what comes after it.
func readMariaDB(rows *sql.Rows) (mariaDBMember, error) {
	var member mariaDBMember
	if !rows.Next() {
		return member, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	if err := rows.Scan(&member.history, &member.executed, &member.acknowledges, &member.waits, &member.waitsAlone,
		&member.timeout, &member.waitPoint, &member.isReadOnly); err != nil {
		return member, err
	}
	slaves, err := nextResult(rows)
	if err != nil {
		return member, err
	}
	if len(slaves) > 0 {
		member.slave = slaves[0]
	}
	hosts, err := nextResult(rows)
	if err != nil {
		return member, err
	}
	for _, host := range hosts {
		member.followers = append(member.followers, host["Host"])
	}
	slices.Sort(member.followers)
	member.followers = slices.Compact(member.followers)
	if !rows.NextResultSet() {
		return member, unlessMissing(rows.Err())
	}
	if rows.Next() {
		row := &member.row
		return member, rows.Scan(&row.role, &row.host, &row.port, &row.acknowledges)
	}
	return member, unlessMissing(rows.Err())
}

// unlessMissing is the error, if it isn't that the row is missing.
func unlessMissing(err error) error {
	var answer *driver.MySQLError
	if errors.As(err, &answer) && (answer.Number == noTable || answer.Number == noColumn) {
		return nil
	}
	return err
}

// nextResult reads the rows of the next result, by the names of their columns.
func nextResult(rows *sql.Rows) ([]map[string]string, error) {
	if !rows.NextResultSet() {
		return nil, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var result []map[string]string
	for rows.Next() {
		values, columns := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			columns[i] = &values[i]
		}
		if err := rows.Scan(columns...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = values[i].String
		}
		result = append(result, row)
	}
	return result, rows.Err()
}

// isFollowing tells whether the member is told to copy from another one.
func (m mariaDBMember) isFollowing() bool {
	return m.isReadOnly && m.row.role == roleReplica && m.row.host != "" && m.row.host == m.slave["Master_Host"]
}

// isPoised tells whether the server is in the middle of executing what it had
// received before its start: the boot script ends that, or it failed.
func (m mariaDBMember) isPoised() bool { return m.slave != nil && m.slave["Using_Gtid"] == "No" }

// isReceiving and isExecuting tell what the server's two threads do.
func (m mariaDBMember) isReceiving() bool { return m.slave["Slave_IO_Running"] == "Yes" }
func (m mariaDBMember) isExecuting() bool { return m.slave["Slave_SQL_Running"] == "Yes" }

// isDrained tells whether all that was received is executed. A transaction that
// has arrived in part isn't received.
func (m mariaDBMember) isDrained() bool {
	return !m.isPoised() && gtidNumber(m.slave["Gtid_IO_Pos"]) <= gtidNumber(m.executed)
}

// isStarving tells whether the thread that executes has nothing to do while the one
// that receives is at work. In a replica that lacks much, but gets it slowly, they
// are nearly always found like that; in one that has all, now and then.
func (m mariaDBMember) isStarving() bool {
	return strings.HasPrefix(m.slave["Slave_SQL_Running_State"], "Slave has read all relay log") &&
		m.slave["Slave_IO_State"] != "Waiting for master to send event"
}

// lag is by how much it is behind what it has received, and negative if nobody can
// tell.
func (m mariaDBMember) lag() time.Duration {
	seconds, err := strconv.ParseInt(m.slave["Seconds_Behind_Master"], 10, 32)
	if err != nil {
		return -1
	}
	return time.Duration(max(seconds, 0)) * time.Second
}

func (m mariaDBMember) replication() plan.Replication {
	r := plan.Replication{Followers: strings.Join(m.followers, ",")}
	if !m.isReadOnly {
		r.Required = m.required().String()
		return r
	}
	if m.isPoised() {
		r.Failure = "what it had received before its start can't be executed"
		return r
	}
	// One that is fenced goes on executing, too.
	r.Failure, r.IsApart = m.executionFailure()
	if !m.isFollowing() {
		return r
	}
	r.Source, r.Acknowledges = m.row.host, m.acknowledges
	r.IsReceiving = m.isReceiving()
	r.IsIdle = m.slave["Slave_IO_Running"] == "No" && m.slave["Last_IO_Errno"] == "0" || m.slave["Slave_SQL_Running"] == "No" && m.slave["Last_SQL_Errno"] == "0"
	lag := m.lag()
	r.IsCurrent = r.IsReceiving && m.isExecuting() && lag >= 0 && lag <= currentWithin && !m.isStarving()
	if r.Failure == "" {
		r.Failure, r.IsApart = m.receptionFailure()
	}
	return r
}

// required is what the primary waits for.
func (m mariaDBMember) required() plan.Acknowledgement {
	if m.waits && m.waitsAlone && m.timeout == strconv.FormatUint(math.MaxUint64, 10) && m.waitPoint == "AFTER_SYNC" {
		return plan.Acknowledgement{Count: 1}
	}
	return plan.Acknowledgement{}
}

// Errors of the thread that executes which say that the data differ from the
// source's: a row is missing or there already, or a transaction is of a number that
// is taken.
const (
	noRow      = "1032"
	rowExists  = "1062"
	outOfOrder = "1950"
)

// executionFailure words why a member doesn't execute what it received, and tells
// whether its data and its source's have parted. The server's own words may hold
// what was written.
func (m mariaDBMember) executionFailure() (words string, isApart bool) {
	switch number := m.slave["Last_SQL_Errno"]; number {
	case "", "0":
		return "", false
	case noRow, rowExists, outOfOrder:
		return "its data aren't those of its source: executing what it received fails with error " + number, true
	default:
		return "executing what it received fails with error " + number, false
	}
}

// receptionFailure words why a member doesn't receive. The server's own words name
// addresses.
func (m mariaDBMember) receptionFailure() (words string, isApart bool) {
	switch number := m.slave["Last_IO_Errno"]; number {
	case "", "0":
		return "", false
	case "1236":
		// The server has one number for all that a source can't read of its log.
		isApart = strings.Contains(m.slave["Last_IO_Error"], "GTID")
		if isApart && strings.Contains(m.slave["Last_IO_Error"], "purged") {
			return "its source no longer has the changes that it needs", true
		}
		if isApart {
			return "it has changes that its source hasn't", true
		}
		return "its source can't read its own log of changes", false
	case "1045", "1698", "4151":
		return "its source refuses the password of the account that members copy with", false
	case "2002", "2003", "2005", "2006", "2013", "2026":
		return "it can't reach its source", false
	default:
		return "copying from its source fails with error " + number, false
	}
}

func (m mariaDBMember) progress() plan.Progress {
	p := plan.Progress{Position: m.position(), IsDrained: m.isDrained()}
	if m.isReadOnly && m.isFollowing() {
		p.Lag = m.lag()
	}
	return p
}

// position has the form of the engine's Compare. It isn't known while the server
// doesn't say what it had received before its start.
func (m mariaDBMember) position() string {
	if m.isPoised() {
		return ""
	}
	received := m.slave["Gtid_IO_Pos"]
	if gtidNumber(received) <= gtidNumber(m.executed) {
		received = ""
	}
	executed := m.history
	// The log of changes may begin later: what was before it counts, too.
	if gtidNumber(m.executed) > gtidNumber(lastOf(executed)) {
		executed = m.executed
	}
	return executed + "/" + received
}

// lastOf is the one with the greatest number of several.
func lastOf(list string) string {
	return slices.MaxFunc(strings.Split(list, ","), func(a, b string) int { return cmp.Compare(gtidNumber(a), gtidNumber(b)) })
}

// gtidNumber is the number in DOMAIN-SERVER-NUMBER, and 0 without one.
func gtidNumber(gtid string) uint64 {
	number, err := strconv.ParseUint(gtid[strings.LastIndexByte(gtid, '-')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return number
}
