// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// callLimit is how long a call may take, as those of the real engines.
const callLimit = time.Second

// url is where all calls go to; the socket is what counts.
const url = "http://played/"

func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 64,
	}}
}

// AwaitEnd returns once nobody answers at a socket any more.
func AwaitEnd(socket string) {
	// The answer comes when the servers end, if at all.
	if response, err := clientOf(socket).Get(url); err == nil {
		_ = response.Body.Close()
	}
}

// Dialer returns what makes connections to the servers behind a socket.
func Dialer(socket string) func(dbclient.Target) dbclient.Connection {
	client := clientOf(socket)
	return func(target dbclient.Target) dbclient.Connection { return &connection{client, target} }
}

type connection struct {
	client *http.Client
	target dbclient.Target
}

// call asks, and says in one sentence why there is no answer.
func (c *connection) call(ctx context.Context, call Call) (plan.EngineState, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	call.Target = c.target
	body, err := json.Marshal(call)
	if err != nil {
		return plan.EngineState{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return plan.EngineState{}, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return plan.EngineState{}, fmt.Errorf("no answer within %s", callLimit)
		}
		return plan.EngineState{}, errors.New("the servers are gone")
	}
	defer func() { _ = response.Body.Close() }() // it was read, or wasn't
	var answer Answer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return plan.EngineState{}, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case answer.Refusal != "":
		return plan.EngineState{}, &dbclient.Refusal{Reason: answer.Refusal}
	case answer.Error != "":
		return plan.EngineState{}, errors.New(answer.Error)
	}
	return answer.State, nil
}

func (c *connection) order(ctx context.Context, call Call) error {
	_, err := c.call(ctx, call)
	return err
}

func (c *connection) State(ctx context.Context) (plan.EngineState, error) {
	return c.call(ctx, Call{Verb: State})
}

func (c *connection) Promote(ctx context.Context, required plan.Acknowledgement) error {
	return c.order(ctx, Call{Verb: Promote, Required: required})
}

func (c *connection) Configure(ctx context.Context, settings plan.Settings) error {
	return c.order(ctx, Call{Verb: Configure, Settings: settings})
}

func (c *connection) SetPassword(ctx context.Context) error {
	return c.order(ctx, Call{Verb: SetPassword})
}

func (c *connection) Follow(ctx context.Context, source plan.Source) error {
	return c.order(ctx, Call{Verb: Follow, Source: source})
}

func (c *connection) Fence(ctx context.Context) error { return c.order(ctx, Call{Verb: Fence}) }

func (c *connection) Demote(ctx context.Context) error { return c.order(ctx, Call{Verb: Demote}) }

func (c *connection) Require(ctx context.Context, required plan.Acknowledgement) error {
	return c.order(ctx, Call{Verb: Require, Required: required})
}

// Close leaves the client's connections to others.
func (c *connection) Close() error { return nil }
