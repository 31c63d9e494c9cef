// SPDX-License-Identifier: Apache-2.0

// Package redis talks to one member of a Redis or Valkey database.
package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// callLimit is how long connecting, sending and receiving may take, each.
const callLimit = time.Second

// ErrRefused says that the member doesn't accept the operator's credentials.
var ErrRefused = errors.New("it refuses the operator's password")

// SilenceDriver keeps the driver from logging on its own, for the whole
// process: what it would log is returned as errors, too, which are reported once.
func SilenceDriver() { logging.Disable() }

// Connection is a connection to one member.
type Connection struct {
	client  *goredis.Client
	account account
	// password is that of the operator's account, and so the one with which the
	// member signs in at its source.
	password string
	// parameters are the names of those whose values State gives.
	parameters []string
}

var (
	_ dbclient.Connection = (*Connection)(nil)
	_ dbclient.Replicator = (*Connection)(nil)
)

// Dial prepares a connection to one member; the first call makes it.
func Dial(target dbclient.Target) *Connection { return connectionTo(target, optionsFor(target)) }

func connectionTo(target dbclient.Target, options *goredis.Options) *Connection {
	return &Connection{
		client:     goredis.NewClient(options),
		account:    accountOf(target),
		password:   target.Password,
		parameters: target.ParameterNames(),
	}
}

func optionsFor(target dbclient.Target) *goredis.Options {
	return &goredis.Options{
		Addr:            target.Address,
		Username:        target.Username,
		Password:        target.Password,
		DialTimeout:     callLimit,
		ReadTimeout:     callLimit,
		WriteTimeout:    callLimit,
		PoolSize:        1,
		MaxRetries:      -1,
		DialerRetries:   1,
		DisableIdentity: true,
		// The limit of the caller's context counts as well.
		ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
}

// State asks what the member is, how far it is, and what it has been told, in one
// round trip. PING isn't among it: a replica whose source is away refuses it, and
// answers all the rest.
func (c *Connection) State(ctx context.Context) (plan.EngineState, error) {
	var answer *goredis.StringCmd
	var account *goredis.Cmd
	settings := goredis.NewMapStringStringCmd(ctx, asWords("CONFIG", "GET", append([]string{minReplicas}, c.parameters...)...)...)
	// The error is that of the first command that fails.
	_, err := c.client.Pipelined(ctx, func(pipeline goredis.Pipeliner) error {
		answer = pipeline.Info(ctx, sections()...)
		_ = pipeline.Process(ctx, settings) // it is only queued
		if c.account.name != "" {
			account = pipeline.Do(ctx, "ACL", "GETUSER", c.account.name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return plan.EngineState{}, describe(err)
	}
	required := settings.Val()[minReplicas]
	delete(settings.Val(), minReplicas)
	state, err := parseInfo(answer.Val()).state(required)
	if err != nil {
		return plan.EngineState{}, err
	}
	state.Settings = plan.Settings(settings.Val()).String()
	if account != nil {
		state.Password = c.account.password(account.Val())
	}
	return state, nil
}

func asWords(command, subcommand string, others ...string) []any {
	words := []any{command, subcommand}
	for _, word := range others {
		words = append(words, word)
	}
	return words
}

// Configure sets parameters in the running server, each by itself: one that is
// refused keeps no other back.
func (c *Connection) Configure(ctx context.Context, settings plan.Settings) error {
	var refused error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		err := c.client.ConfigSet(ctx, name, settings[name]).Err()
		reason, isRefused := refusal(err)
		switch {
		case isRefused && refused == nil:
			refused = &dbclient.Refusal{Reason: fmt.Sprintf("%s = %s: %s", name, settings[name], reason)}
		case err != nil && !isRefused:
			return describe(err)
		}
	}
	return refused
}

// Close ends the connection.
func (c *Connection) Close() error { return c.client.Close() }

// refusal returns what the server has against a command that it was given; false
// if the error is another one.
func refusal(err error) (string, bool) {
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return "", false
	}
	return strings.CutPrefix(answer.Error(), "ERR ")
}

// describe words an error for the status of a database: without addresses or
// ports, which change from one attempt to the next, and without anything that
// the server was sent.
func describe(err error) error {
	var network net.Error
	_, isRefusal := refusal(err)
	switch {
	case isRefusal:
		return errors.New("it answers ERR")
	case goredis.HasErrorPrefix(err, "WRONGPASS"), goredis.HasErrorPrefix(err, "NOAUTH"), goredis.HasErrorPrefix(err, "NOPERM"):
		return ErrRefused
	case goredis.HasErrorPrefix(err, "LOADING"):
		return errors.New("it is loading its data")
	case goredis.HasErrorPrefix(err, "MASTERDOWN"), goredis.HasErrorPrefix(err, "BUSY"):
		word, _, _ := strings.Cut(err.Error(), " ")
		return fmt.Errorf("it answers %s", word)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("no answer within %s", callLimit)
	default:
		return errors.New("the connection fails")
	}
}
