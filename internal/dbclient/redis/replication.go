// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/plan"
)

// minReplicas is the parameter that makes a primary refuse writes while it hears
// of fewer replicas.
const minReplicas = "min-replicas-to-write"

const (
	// handoverLimit is how long a primary that is to be demoted waits for its
	// followers: they speak up once a second.
	handoverLimit = 2 * time.Second
	// pauseLimit ends the pause of the clients, should nobody else.
	pauseLimit = 4 * time.Second
	// askAgain is the time between two looks at how far the followers are.
	askAgain = 10 * time.Millisecond
)

// command is a command and its arguments.
type command []any

func nowhere() command { return command{"REPLICAOF", nowhereHost, nowherePort} }

// withFewPings has a primary say nothing to its followers of its own accord, or
// rarely, so that where they have to be stays the same; often enough that they
// don't take it for gone, should nobody undo it.
func withFewPings() command {
	const seconds = 10
	return command{"CONFIG", "SET", "repl-ping-replica-period", seconds}
}

// withPings has it speak as often as its configuration says.
func withPings() command {
	const seconds = 1
	return command{"CONFIG", "SET", "repl-ping-replica-period", seconds}
}

// Promote has the member follow nobody and take writes. What a replica has
// received without having executed it is never a whole command, and is dropped.
// A member that is to have a primary's data, and hasn't got them yet, is refused:
// as a primary it would empty all others.
func (c *Connection) Promote(ctx context.Context, required plan.Acknowledgement) error {
	is, err := c.info(ctx)
	switch {
	case err != nil:
		return err
	case is.isLoading():
		return errors.New("it is loading its data")
	case !is.knowsPosition() && (is.source() != "" || is["slave_priority"] == "0"):
		return errors.New("it hasn't got the data of its source yet")
	}
	if err := c.require(ctx, required); err != nil {
		return err
	}
	return c.record(ctx, command{"REPLICAOF", "NO", "ONE"}, hasData())
}

// hasData ends what the boot script begins with: a member without data has the
// priority 0.
func hasData() command { return command{"CONFIG", "SET", "replica-priority", 100} }

// Follow points a member that isn't the primary to its source.
func (c *Connection) Follow(ctx context.Context, source plan.Source) error {
	return c.direct(ctx, command{"REPLICAOF", source.Host, source.Port})
}

// Fence points a member that isn't the primary to where nobody is. It goes on
// knowing its position until its next start.
func (c *Connection) Fence(ctx context.Context) error { return c.direct(ctx, nowhere()) }

// direct gives a replica a source.
func (c *Connection) direct(ctx context.Context, source command) error {
	is, err := c.info(ctx)
	switch {
	case err != nil:
		return err
	case is.isPrimary():
		return errors.New("it is a primary, and would forget that")
	case is.knowsPosition():
		return c.record(ctx, source, hasData())
	default:
		return c.record(ctx, source)
	}
}

// Demote keeps writes back until every follower has acknowledged all that the
// member has, and then points it to where nobody is. Writes that were kept back
// are refused then. If a follower doesn't speak up in time, they go on. It needn't
// be undone when the operator dies meanwhile: the pause has an end.
func (c *Connection) Demote(ctx context.Context) (err error) {
	is, err := c.info(ctx)
	if err != nil {
		return err
	}
	if !is.isPrimary() { // whatever it follows since
		return c.record(ctx, withPings())
	}
	defer func() {
		// Also if the caller's time is up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
		defer cancel()
		err = errors.Join(err, c.do(ctx, withPings()), c.do(ctx, command{"CLIENT", "UNPAUSE"}))
	}()
	for _, step := range []command{withFewPings(), {"CLIENT", "PAUSE", pauseLimit.Milliseconds(), "WRITE"}} {
		if err := c.do(ctx, step); err != nil {
			return err
		}
	}
	if err := c.awaitFollowers(ctx); err != nil {
		return err
	}
	return c.record(ctx, nowhere(), withPings())
}

// awaitFollowers returns once the followers have all that the member has.
func (c *Connection) awaitFollowers(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		is, err := c.info(ctx)
		if err != nil || is.followersHaveAll() {
			return err
		}
		select {
		case <-ticker.C:
		case <-limit.Done():
			return errors.New("a replica that is attached doesn't confirm what it has")
		}
	}
}

// Require sets how many replicas the member has to hear of to take writes.
func (c *Connection) Require(ctx context.Context, required plan.Acknowledgement) error {
	if err := c.require(ctx, required); err != nil {
		return err
	}
	return c.record(ctx)
}

// require sets it in the running server, and reads it back. The server doesn't
// know replicas by name.
func (c *Connection) require(ctx context.Context, required plan.Acknowledgement) error {
	want := strconv.Itoa(required.Count)
	if err := c.do(ctx, command{"CONFIG", "SET", minReplicas, want}); err != nil {
		return err
	}
	settings, err := c.client.ConfigGet(ctx, minReplicas).Result()
	if err != nil {
		return describe(err)
	}
	if got := settings[minReplicas]; got != want {
		return fmt.Errorf("it needs %q replicas, and was told %s", got, want)
	}
	return nil
}

// record changes what the member is, and has it write that down, beside its data.
// It would write down the password too with which it signs in at its source, but
// that it has from a file in memory, at each start. So it doesn't know it for the
// moment; nobody can ask for it in between, since all is one transaction.
func (c *Connection) record(ctx context.Context, changes ...command) error {
	changes = append(changes,
		command{"CONFIG", "SET", "masterauth", ""}, command{"CONFIG", "REWRITE"}, command{"CONFIG", "SET", "masterauth", c.password})
	_, err := c.client.TxPipelined(ctx, func(transaction goredis.Pipeliner) error {
		for _, change := range changes {
			transaction.Do(ctx, change...)
		}
		return nil
	})
	if err != nil {
		return describe(err)
	}
	return nil
}

func (c *Connection) do(ctx context.Context, step command) error {
	if err := c.client.Do(ctx, step...).Err(); err != nil {
		return describe(err)
	}
	return nil
}

func (c *Connection) info(ctx context.Context) (info, error) {
	answer, err := c.client.Info(ctx, sections()...).Result()
	if err != nil {
		return nil, describe(err)
	}
	return parseInfo(answer), nil
}
