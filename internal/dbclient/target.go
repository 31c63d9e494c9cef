// SPDX-License-Identifier: Apache-2.0

// Package dbclient says how one member of a database is reached. Each engine's
// client is a package of its own below.
package dbclient

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
