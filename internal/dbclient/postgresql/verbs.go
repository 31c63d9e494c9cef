// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// What a call finds that the next one may find otherwise.
var (
	errIsPrimary   = errors.New("it takes writes, and so copies from nobody")
	errUndrained   = errors.New("it hasn't executed all that it has received")
	errReceives    = errors.New("it still receives from a former source")
	errUnset       = errors.New("it was told, and its server hasn't heard of it yet")
	errBusy        = errors.New("a process of its server that has to hear of it is busy")
	errCantPromote = errors.New("it can't be told to promote itself")
)

const (
	// askStanding gives what a member that is to be changed is: whether it is a
	// replica, its pod's name, how it connects, whether it still receives, and
	// whether the process is held up that would have to end that. A receiver that
	// waits is one whose source has nothing more for it: it does nothing until it
	// is told where to go on, and stays for ever in a replica that has nowhere to.
	askStanding = `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('cluster_name'), pg_catalog.current_setting('primary_conninfo'),
		EXISTS (SELECT FROM pg_catalog.pg_stat_get_wal_receiver() r WHERE r.pid IS NOT NULL AND r.status OPERATOR(pg_catalog.<>) 'waiting'),
		EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(NULL) a WHERE a.backend_type OPERATOR(pg_catalog.=) 'startup'
			AND (a.wait_event_type OPERATOR(pg_catalog.=) ANY ('{Lock,BufferPin}') OR a.wait_event OPERATOR(pg_catalog.~~) 'RecoveryConflict%'))`

	// askPause is how one waits between two looks: in the server, which the call
	// limit ends.
	askPause = `SELECT pg_catalog.pg_sleep(0.02)`

	// askRequired gives what the primary waits for, and whether the process has
	// time to hear of a change that tells the sessions whether to wait at all. It
	// has none while it brings a checkpoint to the disk.
	askRequired = `SELECT pg_catalog.current_setting('synchronous_standby_names'),
		EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(NULL) a WHERE a.backend_type OPERATOR(pg_catalog.=) 'checkpointer'
			AND a.wait_event OPERATOR(pg_catalog.=) ANY ('{CheckpointerMain,CheckpointWriteDelay}'))`

	// askPromotion does nothing to a member that is the primary already, for
	// which the function would fail. It doesn't wait for the end.
	askPromotion = `SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_promote(wait => false) ELSE true END`
)

// standing is the answer to askStanding.
type standing struct {
	isReplica, isReceiving, isHeldUp bool
	name, conninfo                   string
}

func (c *Connection) standing(ctx context.Context) (standing, error) {
	row, err := c.askRow(ctx, askStanding, 5)
	if err != nil {
		return standing{}, err
	}
	return standing{isReplica: row[0] == "t", name: row[1], conninfo: row[2], isReceiving: row[3] == "t", isHeldUp: row[4] == "t"}, nil
}

// Follow tells a replica whom to copy from. That its own word counts, or counts no
// more, is a change like that of the source: it connects anew under another name.
func (c *Connection) Follow(ctx context.Context, source plan.Source) error {
	now, err := c.standing(ctx)
	if err != nil {
		return err
	}
	if !now.isReplica {
		return errIsPrimary
	}
	wanted, err := conninfo(now.name, source)
	if err != nil {
		return err
	}
	if hostOf(now.conninfo) != source.Host {
		if err := c.awaitDrained(ctx); err != nil {
			return err
		}
	}
	return c.setSource(ctx, wanted)
}

// Fence takes from a replica whom to copy from, and is done when no process of
// it receives any more, nor will.
func (c *Connection) Fence(ctx context.Context) error {
	now, err := c.standing(ctx)
	if err != nil {
		return err
	}
	if !now.isReplica {
		return errIsPrimary
	}
	if err := c.setSource(ctx, ""); err != nil {
		return err
	}
	// Twice in a row: one that had just been about to be started is seen then. One
	// is held up by a query on the replica, for as long as max_standby_streaming_delay.
	quiet := 0
	return c.await(ctx, errReceives, func() (bool, error) {
		now, err := c.standing(ctx)
		if quiet++; now.isReceiving || now.isHeldUp {
			quiet = 0
		}
		return quiet == 2, err
	})
}

// Demote is refused: the boot script does it, where the topology names another
// member as the primary.
func (c *Connection) Demote(context.Context) error {
	return &dbclient.Refusal{Reason: "a primary of PostgreSQL becomes a replica only by a start of its server"}
}

// Require tells a primary what to wait for.
func (c *Connection) Require(ctx context.Context, required plan.Acknowledgement) error {
	names, err := synchronousNames(required)
	if err != nil {
		return err
	}
	return c.set(ctx, "synchronous_standby_names", names, errBusy, func() (bool, error) {
		row, err := c.askRow(ctx, askRequired, 2)
		return err == nil && row[0] == names && row[1] == "t", err
	})
}

// Promote lets a replica end its recovery: it takes writes from then on, and its
// history has a new part. State tells when it is done.
func (c *Connection) Promote(ctx context.Context, required plan.Acknowledgement) error {
	now, err := c.standing(ctx)
	if err != nil {
		return err
	}
	if !now.isReplica {
		return c.Require(ctx, required)
	}
	if err := c.Fence(ctx); err != nil {
		return err
	}
	if err := c.awaitDrained(ctx); err != nil {
		return err
	}
	if err := c.Require(ctx, required); err != nil {
		return err
	}
	row, err := c.askRow(ctx, askPromotion, 1)
	if err == nil && row[0] != "t" {
		err = errCantPromote
	}
	return err
}

// awaitDrained waits until a replica has executed all that it has received, if
// that is a matter of a moment. One that is being promoted is a replica until it
// has, and has then.
func (c *Connection) awaitDrained(ctx context.Context) error {
	return c.await(ctx, errUndrained, func() (bool, error) {
		row, err := c.askRow(ctx, "SELECT pg_catalog.pg_is_in_recovery(), "+askReplication, 1+replicationColumns)
		return err == nil && (row[0] == "f" || parseAnswer(row[1:]).isDrained()), err
	})
}

// setSource sets whom a replica copies from, in its data and in its server.
func (c *Connection) setSource(ctx context.Context, conninfo string) error {
	return c.set(ctx, "primary_conninfo", conninfo, errUnset, func() (bool, error) {
		now, err := c.standing(ctx)
		return now.conninfo == conninfo, err
	})
}

// set sets a parameter in the data of a member, has its server hear of it, and
// waits until that is so. It waits for no replica: nothing is written that one
// would get.
func (c *Connection) set(ctx context.Context, name, value string, otherwise error, isSet func() (bool, error)) error {
	if done, err := isSet(); done || err != nil {
		return err
	}
	if _, err := c.ask(ctx, fmt.Sprintf("ALTER SYSTEM SET %s = %s", name, quoteText(value))); err != nil {
		return err
	}
	if _, err := c.ask(ctx, askReload); err != nil {
		return err
	}
	return c.await(ctx, otherwise, isSet)
}

// await looks until something is so, for as long as a call may take.
func (c *Connection) await(ctx context.Context, otherwise error, isSo func() (bool, error)) error {
	for deadline := time.Now().Add(callLimit); ; {
		if done, err := isSo(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return otherwise
		}
		if _, err := c.ask(ctx, askPause); err != nil {
			return err
		}
	}
}
