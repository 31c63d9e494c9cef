// SPDX-License-Identifier: Apache-2.0

// Package remote lets an operator ask database servers that a test plays: both are
// processes of their own, and speak over a Unix socket, so that no address of a
// played pod is ever dialled. Only an operator that is built with the tag "played"
// has the client.
package remote

import (
	"context"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// SocketVariable is the environment variable that names the socket.
const SocketVariable = "PLAYED_SERVERS"

// Verb is what a call asks for.
type Verb string

// The verbs, as dbclient.Connection has them.
const (
	State       Verb = "State"
	Promote     Verb = "Promote"
	Configure   Verb = "Configure"
	SetPassword Verb = "SetPassword"
	Follow      Verb = "Follow"
	Fence       Verb = "Fence"
	Demote      Verb = "Demote"
	Require     Verb = "Require"
)

// Call is one question or order to a server.
type Call struct {
	Target dbclient.Target
	Verb   Verb
	// What the verb takes.
	Required plan.Acknowledgement
	Settings plan.Settings
	Source   plan.Source
}

// Answer is what a server says. Of the errors at most one is given.
type Answer struct {
	State plan.EngineState
	// Error is why it wasn't done; Refusal why it never will be.
	Error, Refusal string
}

// Servers answer calls.
type Servers interface {
	Answer(ctx context.Context, call Call) Answer
}
