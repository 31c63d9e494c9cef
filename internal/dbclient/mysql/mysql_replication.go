// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/plan"
)

// What the verbs answer. None of them waits for a commit to be acknowledged: the
// operator's sessions write no binary log.
var (
	errTakesWrites   = errors.New("it takes writes")
	errTakesNoWrites = errors.New("it takes no writes")
	errUnexecuted    = errors.New("it hasn't executed all that it has received")
	errReceives      = errors.New("it hasn't stopped receiving yet")
	errUnset         = errors.New("it doesn't wait for acknowledgement as it was told to")
	errCommitsWait   = errors.New("commits are underway that don't end, such as those that wait for acknowledgement")
	errUnsent        = errors.New("it hasn't sent all to a follower")
)

const (
	// mysqlDemoteLimit is how long a primary may take to stop taking writes: as
	// long as the session waits for a lock, and some more.
	mysqlDemoteLimit = 1500 * time.Millisecond
	// mysqlSendLimit is how long it may take to send the last of them.
	mysqlSendLimit = 700 * time.Millisecond
	// mysqlLockTimeout is the error for a lock that isn't to be had.
	mysqlLockTimeout = 1205
)

// mysqlReplicatorPassword is that of the account replicator, as the boot script
// makes it. The server keeps 32 bytes of a source's password.
func mysqlReplicatorPassword(admin string) string {
	digest := sha256.Sum256([]byte("replicator:" + admin))
	return hex.EncodeToString(digest[:])[:32]
}

// look asks what a member says of replication.
func (mysqlReplicates) look(ctx context.Context, c *Connection) (member mysqlMember, err error) {
	err = call(ctx, func(ctx context.Context) error { return member.scan(c.db.QueryRowContext(ctx, mysqlLook)) })
	return member, err
}

// do executes a statement, within the limit of a call.
func (mysqlReplicates) do(ctx context.Context, c *Connection, statement string, values ...any) error {
	return call(ctx, func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx, statement, values...)
		return err
	})
}

// detach has the member receive and execute nothing any more, once all that it has
// received is executed.
func (r mysqlReplicates) detach(ctx context.Context, c *Connection) error {
	if err := r.do(ctx, c, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	stopped, err := r.look(ctx, c)
	switch {
	case err != nil:
		return err
	case stopped.receiver != "OFF":
		return errReceives
	case !stopped.isDrained:
		return errUnexecuted
	}
	return r.do(ctx, c, "STOP REPLICA")
}

// promote makes a member the primary. First comes what is received and executed,
// then what it waits for, and then the first write.
func (r mysqlReplicates) promote(ctx context.Context, c *Connection, required plan.Acknowledgement) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if member.isReadOnly && member.host != "" {
		if err := r.detach(ctx, c); err != nil {
			return err
		}
		if err := r.do(ctx, c, "RESET REPLICA ALL"); err != nil {
			return err
		}
	}
	if err := r.wait(ctx, c, required.Count); err != nil {
		return err
	}
	// PERSIST writes it into the data directory, too.
	return r.do(ctx, c, "SET PERSIST super_read_only = OFF, PERSIST read_only = OFF, PERSIST init_replica = '', PERSIST rpl_semi_sync_replica_enabled = OFF")
}

// require is what the primary waits for.
func (r mysqlReplicates) require(ctx context.Context, c *Connection, required plan.Acknowledgement) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if member.isReadOnly {
		return errTakesNoWrites
	}
	return r.wait(ctx, c, required.Count)
}

// wait sets for how many replicas a commit waits, and reads it back. It waits as
// long as it takes, also for the first replica, and before anybody sees it.
func (r mysqlReplicates) wait(ctx context.Context, c *Connection, count int) error {
	statement := "SET PERSIST rpl_semi_sync_source_enabled = OFF"
	if count > 0 {
		statement = "SET PERSIST rpl_semi_sync_source_timeout = " + strconv.FormatUint(math.MaxUint64, 10) + ", PERSIST rpl_semi_sync_source_wait_no_replica = ON, " +
			"PERSIST rpl_semi_sync_source_wait_point = 'AFTER_SYNC', PERSIST rpl_semi_sync_source_wait_for_replica_count = " + strconv.Itoa(count) +
			", PERSIST rpl_semi_sync_source_enabled = ON"
	}
	if err := r.do(ctx, c, statement); err != nil {
		return err
	}
	var isEnabled, waitsForFirst bool
	var set int
	var timeout uint64
	var point string
	err := call(ctx, func(ctx context.Context) error {
		return c.db.QueryRowContext(ctx, "SELECT @@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_no_replica, "+
			"@@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, @@GLOBAL.rpl_semi_sync_source_timeout, @@GLOBAL.rpl_semi_sync_source_wait_point").
			Scan(&isEnabled, &waitsForFirst, &set, &timeout, &point)
	})
	isSet := isEnabled && waitsForFirst && set == count && timeout == math.MaxUint64 && point == "AFTER_SYNC"
	if err == nil && (isEnabled != (count > 0) || count > 0 && !isSet) {
		return errUnset
	}
	return err
}

// follow has a replica copy from a source. What it is told is changed while it
// receives nothing, so that what it says it does is what it does.
func (r mysqlReplicates) follow(ctx context.Context, c *Connection, source plan.Source) error {
	member, err := r.look(ctx, c)
	switch {
	case err != nil:
		return err
	case !member.isReadOnly:
		return errTakesWrites
	case member.isReceiving() && member.applier == "ON" && member.host == source.Host && member.port == source.Port && member.acknowledges == source.Acknowledges:
		return nil
	case member.isIdle(source):
		// What was received is kept, and needn't be executed before.
		return r.start(ctx, c)
	}
	if member.host != "" {
		if err := r.detach(ctx, c); err != nil {
			return err
		}
	}
	acknowledges := "OFF"
	if source.Acknowledges {
		acknowledges = "ON"
	}
	// Both threads are stopped: what was received is thrown away.
	if err := r.do(ctx, c, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = 'replicator', SOURCE_AUTO_POSITION = 1, "+
		"GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_HEARTBEAT_PERIOD = 1", source.Host, source.Port); err != nil {
		return err
	}
	// What it executes waits for nobody, not even for followers of its own.
	if err := r.do(ctx, c, "SET PERSIST rpl_semi_sync_source_enabled = OFF, PERSIST rpl_semi_sync_replica_enabled = "+acknowledges+", PERSIST init_replica = ''"); err != nil {
		return err
	}
	return r.start(ctx, c)
}

func (r mysqlReplicates) start(ctx context.Context, c *Connection) error {
	return r.do(ctx, c, "START REPLICA USER = 'replicator' PASSWORD = ?", mysqlReplicatorPassword(c.target.Password))
}

// isIdle tells whether all is as it is to be for a source, but for a thread that
// stands.
func (m mysqlMember) isIdle(source plan.Source) bool {
	return m.follows() && m.host == source.Host && m.port == source.Port && m.acknowledges == source.Acknowledges && m.replication().IsIdle
}

// fence has a replica receive nothing any more. First comes what is read at the
// next start.
func (r mysqlReplicates) fence(ctx context.Context, c *Connection) error {
	member, err := r.look(ctx, c)
	switch {
	case err != nil:
		return err
	case !member.isReadOnly:
		return errTakesWrites
	}
	if err := r.do(ctx, c, "SET PERSIST init_replica = ?", mysqlFence); err != nil || member.host == "" {
		return err
	}
	if err := r.do(ctx, c, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	if member.applier != "ON" && member.executeError == 0 {
		if err := r.do(ctx, c, "START REPLICA SQL_THREAD"); err != nil {
			return err
		}
	}
	if member, err = r.look(ctx, c); err == nil && member.receiver != "OFF" {
		return errReceives
	}
	return err
}

// demote has a primary take no writes. Commits that are underway end before, and
// with them the wait for acknowledgement; where they don't, nothing is changed. A
// server that only a shutdown would free of them is left as it is: its next start
// makes a replica of it, where the topology names another primary.
func (r mysqlReplicates) demote(ctx context.Context, c *Connection) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if !member.isReadOnly {
		if err := r.stopWrites(ctx, c); err != nil {
			return err
		}
		if err := r.awaitFollower(ctx, c); err != nil {
			return cmp.Or(r.do(ctx, c, "SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF"), err)
		}
	}
	// That it takes no writes at the next start is what the configuration says. Were
	// it persisted, too, the start would take none of its own, and set no account.
	// Whatever of this is undone, it starts as a replica of nobody, or as a primary
	// that waits as it did.
	if err := r.do(ctx, c, "RESET PERSIST IF EXISTS super_read_only"); err != nil {
		return err
	}
	if err := r.do(ctx, c, "RESET PERSIST IF EXISTS read_only"); err != nil {
		return err
	}
	return r.do(ctx, c, "SET PERSIST init_replica = ?, PERSIST rpl_semi_sync_source_enabled = OFF", mysqlFence)
}

func (mysqlReplicates) stopWrites(ctx context.Context, c *Connection) error {
	isBlocked := false
	err := callWithin(ctx, mysqlDemoteLimit, func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx, "SET GLOBAL super_read_only = ON")
		var answer *driver.MySQLError
		isBlocked = errors.As(err, &answer) && answer.Number == mysqlLockTimeout
		return err
	})
	if isBlocked {
		return errCommitsWait
	}
	return err
}

// awaitFollower waits until a follower was sent all, if there is any: whether it
// has it, its own position tells.
func (mysqlReplicates) awaitFollower(ctx context.Context, c *Connection) error {
	ctx, cancel := context.WithTimeout(ctx, mysqlSendLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var followers int
		var served sql.NullInt64
		err := call(ctx, func(ctx context.Context) error {
			return c.db.QueryRowContext(ctx, "SELECT COUNT(*), SUM(STATE LIKE 'Source has sent all binlog to replica%') "+
				"FROM performance_schema.processlist WHERE COMMAND = 'Binlog Dump GTID'").Scan(&followers, &served)
		})
		if err != nil || followers == 0 || served.Int64 > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return errUnsent
		case <-tick.C:
		}
	}
}
