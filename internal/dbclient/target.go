// SPDX-License-Identifier: Apache-2.0

// Package dbclient says how one member of a database is reached. Each engine's
// client is a package of its own below.
package dbclient

import (
	"context"

	"coolops.cn/database-manager/internal/plan"
)

// Target is one member, and the credentials to ask it with.
type Target struct {
	// Address is the pod's IP address and the engine's port.
	Address string
	// Username and Password are those of the operator's account.
	Username string
	Password string
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
	// Promote makes the member the primary: it takes writes from now on, and
	// does so after a restart. It may be called again.
	Promote(ctx context.Context) error
	// Close ends the connection.
	Close() error
}
