// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Problem is why a database can't be brought further without help. It is an
// error, so that the executor can return what it met.
type Problem struct {
	// Reason is one of the reasons of the API package.
	Reason string
	// Message says what is wrong, with which object, and what to do about it.
	Message string
	// Retry is after what time to look again, for what no watch tells us; zero
	// means that only a change of the spec can help.
	Retry time.Duration
	// IsAside is true if the database does what it did before all the same, and
	// all else goes on: only Degraded tells of it.
	IsAside bool
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// foreignRetry is how often an object that isn't ours is looked at again: it
// doesn't carry our labels, so no watch says when it goes.
const foreignRetry = 30 * time.Second
