// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"time"
)

// What a sync returns decides when its key is looked at again:
//
//	nil       when something changes
//	*Wait     after the time that it names, without back-off
//	*Stalled  when something changes; trying again is of no use before
//	other     with a back-off that grows per key

// Wait asks for a key to be synced again after a while. It isn't a failure.
type Wait struct {
	// After is how long to wait; it is positive.
	After time.Duration
	// Reason says what is being waited for, for logs.
	Reason string
}

// Error describes the wait.
func (w *Wait) Error() string { return fmt.Sprintf("wait %s: %s", w.After, w.Reason) }

// Stalled says that a key can't be brought further until what it depends on
// changes.
type Stalled struct {
	// Reason says what is in the way, for logs.
	Reason string
}

// Error describes what is in the way.
func (s *Stalled) Error() string { return "stalled: " + s.Reason }

// panicked is the error that a recovered panic becomes.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// resultOf names the class of an error, as a metric's label.
func resultOf(err error) string {
	var wait *Wait
	var stalled *Stalled
	var panicked *panicked
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &wait):
		return "wait"
	case errors.As(err, &stalled):
		return "stalled"
	case errors.As(err, &panicked):
		return "panic"
	default:
		return "error"
	}
}
