// SPDX-License-Identifier: Apache-2.0

// Package dbclient says how one member of a database is reached. Each engine's
// client is a package of its own below.
package dbclient

import (
	"context"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// Target is one member, and the credentials to ask it with.
type Target struct {
	// Address is the pod's IP address and the engine's port.
	Address string
	// Username and Password are those of the operator's account.
	Username string
	Password string
	// AppUsername and AppPassword are those that the application's account should
	// have.
	AppUsername string
	AppPassword string
	// Parameters are the names of the parameters whose values State gives,
	// separated by commas: so that two targets can be compared.
	Parameters string
}

// ParameterNames are the names in Parameters.
func (t Target) ParameterNames() []string {
	if t.Parameters == "" {
		return nil
	}
	return strings.Split(t.Parameters, ",")
}

// String never shows the password.
func (t Target) String() string { return t.Username + "@" + t.Address }

// GoString is String, so that no formatting verb shows the password.
func (t Target) GoString() string { return t.String() }

// Connection is a way to speak to one member, in the protocol of its engine.
// Its errors are shown to users: they hold no secret, and no address that
// changes from one call to the next.
type Connection interface {
	// State asks the member how it is.
	State(ctx context.Context) (plan.EngineState, error)
	// Promote makes the member the primary, which follows nobody: it takes writes
	// from now on, and does so after a restart. What it waits for before a client
	// hears of a commit is set, and read back, before the first write. It fails
	// while the member hasn't executed all that it has received. It may be called
	// again.
	Promote(ctx context.Context, required plan.Acknowledgement) error
	// Configure sets parameters in the running server, by their names, to values
	// in the form in which State gives them. It fails with a Refusal if the server
	// doesn't take one. It may be called again.
	Configure(ctx context.Context, settings plan.Settings) error
	// SetPassword gives the application's account the password of the target, and
	// takes every other from it; what else the account is stays as it is. It fails
	// with a Refusal if the server takes no such password. It may be called again.
	SetPassword(ctx context.Context) error
	Replicator
	// Close ends the connection.
	Close() error
}

// Replicator is what a connection can do about copying from one member to
// another. Each call is over within a second or two, and may be repeated; what
// it does lies in the data of the member, and so holds after a restart, with the
// operator or without.
type Replicator interface {
	// Follow has the member, which isn't the primary, copy from another one, and go
	// on doing so after each restart. What it has received from a former source and
	// not executed isn't lost by it: it fails until that is executed.
	Follow(ctx context.Context, source plan.Source) error
	// Fence has a member that isn't the primary receive nothing any more, from
	// nobody, also after a restart: what it has by then is all that it will have,
	// and it acknowledges nothing. What it has received it still executes. Its
	// State gives the position.
	Fence(ctx context.Context) error
	// Demote has the primary take no writes any more, also after a restart, until
	// it is promoted again. All that it has is with its followers by then, or it
	// fails and goes on as before, as far as the engine can tell.
	Demote(ctx context.Context) error
	// Require sets what the primary waits for before a client hears of a commit,
	// and reads it back.
	Require(ctx context.Context, required plan.Acknowledgement) error
}

// Refusal is an error that says that a server doesn't take what it was given,
// and would not the next time either.
type Refusal struct {
	// Reason is what the server says, for users: no secret is in it.
	Reason string
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }
