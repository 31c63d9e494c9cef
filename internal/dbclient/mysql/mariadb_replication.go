// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/plan"
)

// The roles in the row.
const (
	rolePrimary = "primary"
	roleReplica = "replica"
	roleFenced  = "fenced"
)

// replicator is the account that members copy from each other with.
const replicator = "replicator"

// stopLimit is how long a member may take to stop: a primary to take writes, for
// which it waits as long as for a lock, which is a second; and a replica to receive,
// which gives its source a second to hear of it.
const stopLimit = 1500 * time.Millisecond

// lockTimeout is the error for a lock that isn't to be had.
const lockTimeout = 1205

var (
	errIsPrimary   = errors.New("it is the primary")
	errNotPrimary  = errors.New("it isn't the primary")
	errNotExecuted = errors.New("it hasn't executed all that it has received")
	errNotReady    = errors.New("it doesn't wait for acknowledgement as it was told to")
	errUnderway    = errors.New("commits are underway that don't end, such as those that wait for acknowledgement")
)

// replicatorPassword is that of the account replicator, as the boot script makes it.
func replicatorPassword(admin string) string {
	digest := sha256.Sum256([]byte(admin))
	return hex.EncodeToString(digest[:])[:40]
}

// look asks for what a member says of replication.
func (mariaDBReplicates) look(ctx context.Context, c *Connection) (member mariaDBMember, err error) {
	err = call(ctx, func(ctx context.Context) (err error) {
		rows, err := c.db.QueryContext(ctx, "BEGIN NOT ATOMIC "+mariaDBResults+"; END")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		member, err = readMariaDB(rows)
		return err
	})
	return member, err
}

// do executes statements, each within the limit of a call.
func (mariaDBReplicates) do(ctx context.Context, c *Connection, statements ...string) error {
	for _, statement := range statements {
		err := call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, statement)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// save writes the row, which no other member gets: so it waits for nobody.
func (r mariaDBReplicates) save(ctx context.Context, c *Connection, row mariaDBRole, required plan.Acknowledgement) error {
	write := func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx,
			`REPLACE INTO database_manager.member (id, role, host, port, acknowledges, required) VALUES (1, ?, ?, ?, ?, ?)`,
			row.role, row.host, row.port, row.acknowledges, required.Count)
		return err
	}
	return call(ctx, func(ctx context.Context) error {
		err := write(ctx)
		var answer *driver.MySQLError
		if !errors.As(err, &answer) || answer.Number != noColumn {
			return err
		}
		// An older boot script made the table.
		if _, err := c.db.ExecContext(ctx, mariaDBColumns); err != nil {
			return err
		}
		return write(ctx)
	})
}

// mariaDBColumns brings the table to its form, as the boot script does.
const mariaDBColumns = `ALTER TABLE database_manager.member ADD COLUMN IF NOT EXISTS host VARCHAR(255) NOT NULL DEFAULT '', ` +
	`ADD COLUMN IF NOT EXISTS port INT UNSIGNED NOT NULL DEFAULT 3306, ADD COLUMN IF NOT EXISTS acknowledges BOOLEAN NOT NULL DEFAULT 0, ` +
	`ADD COLUMN IF NOT EXISTS required INT UNSIGNED NOT NULL DEFAULT 0`

// stopReception stops the thread that receives.
func (mariaDBReplicates) stopReception(ctx context.Context, c *Connection) error {
	return callWithin(ctx, stopLimit, func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx, "STOP SLAVE IO_THREAD")
		return err
	})
}

// stopReceiving has the member receive nothing any more, and looks what it has
// then: an error if it hasn't executed that.
func (r mariaDBReplicates) stopReceiving(ctx context.Context, c *Connection, member mariaDBMember) error {
	if member.slave == nil {
		return nil
	}
	if err := r.stopReception(ctx, c); err != nil {
		return err
	}
	stopped, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if !stopped.isDrained() {
		return errNotExecuted
	}
	return nil
}

// promote makes a member the primary. First comes what is received and executed,
// then what it waits for, then what is read at the next start, so that no primary
// becomes a replica by a restart, and then the first write.
func (r mariaDBReplicates) promote(ctx context.Context, c *Connection, required plan.Acknowledgement) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if member.isReadOnly {
		if err := r.stopReceiving(ctx, c, member); err != nil {
			return err
		}
		if member.slave != nil {
			if err := r.do(ctx, c, "STOP SLAVE", "RESET SLAVE ALL"); err != nil {
				return err
			}
		}
		if err := r.do(ctx, c, "SET GLOBAL rpl_semi_sync_slave_enabled = OFF"); err != nil {
			return err
		}
	}
	if err := r.wait(ctx, c, required); err != nil {
		return err
	}
	if err := r.save(ctx, c, mariaDBRole{role: rolePrimary, port: portOfNobody}, required); err != nil {
		return err
	}
	return r.do(ctx, c, "SET GLOBAL read_only = OFF")
}

// portOfNobody is the port in the row of a member that copies from nobody.
const portOfNobody = 3306

// wait sets what commits wait for, and reads it back.
func (r mariaDBReplicates) wait(ctx context.Context, c *Connection, required plan.Acknowledgement) error {
	statement := "SET GLOBAL rpl_semi_sync_master_enabled = OFF"
	switch {
	case required.Count > 1:
		return fmt.Errorf("it can't wait for %d acknowledgements, but for one", required.Count)
	case required.Count == 1:
		statement = "SET GLOBAL rpl_semi_sync_master_enabled = ON"
	}
	if err := r.do(ctx, c, statement); err != nil {
		return err
	}
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if member.waits != (required.Count == 1) || member.required().Count != required.Count {
		return errNotReady
	}
	return nil
}

// require writes first what is read at the next start.
func (r mariaDBReplicates) require(ctx context.Context, c *Connection, required plan.Acknowledgement) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if member.isReadOnly {
		return errNotPrimary
	}
	if err := r.save(ctx, c, mariaDBRole{role: rolePrimary, port: portOfNobody}, required); err != nil {
		return err
	}
	return r.wait(ctx, c, required)
}

// follow has a member copy from another one. What it is told is written first: a
// start does the rest. While the server's two threads both stand, a start of one
// throws away what was received: so nothing may be left of it by then, or the one
// that executes goes on running.
func (r mariaDBReplicates) follow(ctx context.Context, c *Connection, source plan.Source) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if !member.isReadOnly {
		return errIsPrimary
	}
	row := mariaDBRole{role: roleReplica, host: source.Host, port: source.Port, acknowledges: source.Acknowledges}
	isSame := member.slave["Master_Host"] == source.Host && member.slave["Master_Port"] == strconv.Itoa(int(source.Port)) && !member.isPoised()
	attends := member.slave["Slave_IO_Running"] != "No"
	if isSame && member.isExecuting() {
		return r.receive(ctx, c, row, member)
	}
	if isSame && attends {
		return errors.Join(r.save(ctx, c, row, plan.Acknowledgement{}), r.do(ctx, c, "START SLAVE SQL_THREAD"))
	}
	if err := r.stopReceiving(ctx, c, member); err != nil {
		return err
	}
	if err := r.save(ctx, c, row, plan.Acknowledgement{}); err != nil {
		return err
	}
	return r.repoint(ctx, c, source)
}

// receive has a member that executes what it gets from its source receive from it,
// acknowledging or not. That takes effect at the next connection.
func (r mariaDBReplicates) receive(ctx context.Context, c *Connection, row mariaDBRole, member mariaDBMember) error {
	isAttending := member.slave["Slave_IO_Running"] != "No"
	if member.row == row && member.acknowledges == row.acknowledges && isAttending {
		return nil
	}
	if err := r.save(ctx, c, row, plan.Acknowledgement{}); err != nil {
		return err
	}
	if member.acknowledges != row.acknowledges {
		if err := r.stopReception(ctx, c); err != nil {
			return err
		}
		if err := r.do(ctx, c, acknowledging(row.acknowledges)); err != nil {
			return err
		}
	}
	return r.do(ctx, c, "START SLAVE IO_THREAD")
}

func acknowledging(acknowledges bool) string {
	if acknowledges {
		return "SET GLOBAL rpl_semi_sync_slave_enabled = ON"
	}
	return "SET GLOBAL rpl_semi_sync_slave_enabled = OFF"
}

// repoint has a member that has executed all that it received copy from another
// source. What a former primary wrote itself counts as received.
func (r mariaDBReplicates) repoint(ctx context.Context, c *Connection, source plan.Source) error {
	if err := r.do(ctx, c, "STOP SLAVE", "SET GLOBAL rpl_semi_sync_master_enabled = OFF", acknowledging(source.Acknowledges)); err != nil {
		return err
	}
	err := call(ctx, func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx, `CHANGE MASTER TO MASTER_HOST=?, MASTER_PORT=?, MASTER_USER=?, MASTER_PASSWORD=?, `+
			`MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1, MASTER_USE_GTID=slave_pos, MASTER_DEMOTE_TO_SLAVE=1`,
			source.Host, source.Port, replicator, replicatorPassword(c.target.Password))
		return err
	})
	if err != nil {
		return err
	}
	return r.do(ctx, c, "START SLAVE")
}

// fence writes first what is read at the next start. The thread that executes goes
// on with what was received.
func (r mariaDBReplicates) fence(ctx context.Context, c *Connection) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if !member.isReadOnly {
		return errIsPrimary
	}
	if err := r.save(ctx, c, mariaDBRole{role: roleFenced, port: portOfNobody}, plan.Acknowledgement{}); err != nil {
		return err
	}
	if member.slave != nil {
		if err := r.stopReception(ctx, c); err != nil {
			return err
		}
	}
	return r.do(ctx, c, acknowledging(false))
}

// demote takes the right to write from the primary. The server first lets the
// commits that are underway end; where one doesn't, all goes on as before. In sync
// mode a commit has ended when it is acknowledged: so a follower has all of them.
// In async mode the positions tell.
func (r mariaDBReplicates) demote(ctx context.Context, c *Connection) error {
	member, err := r.look(ctx, c)
	if err != nil {
		return err
	}
	if !member.isReadOnly {
		isBlocked := false
		err := callWithin(ctx, stopLimit, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, "SET GLOBAL read_only = ON")
			var answer *driver.MySQLError
			isBlocked = errors.As(err, &answer) && answer.Number == lockTimeout
			return err
		})
		if isBlocked {
			return errUnderway
		}
		if err != nil {
			return err
		}
	} else if member.row.role != rolePrimary {
		return nil
	}
	if err := r.save(ctx, c, mariaDBRole{role: roleFenced, port: portOfNobody}, plan.Acknowledgement{}); err != nil {
		return err
	}
	return r.do(ctx, c, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
}
