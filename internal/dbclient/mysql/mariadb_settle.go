// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// settleTime is for how long a replica of MariaDB has to look current before it
// counts as that. A source begins by looking for the place in its log, which takes
// seconds where the file is large; and until it sends something, and whenever the
// replica has executed what there is of it, one that lacks much says the same as
// one that lacks nothing.
const settleTime = 5 * time.Second

// settling remembers since when a member looks current, as far as it was looked at.
type settling struct {
	mu       sync.Mutex
	hasAsked bool
	runID    string
	// since is zero while it doesn't look so. isSettled is true once it has for long
	// enough.
	since     time.Time
	isSettled bool
}

// isCurrent takes what a member says, or that it says nothing, and tells whether it
// is current. One that is looked at for the first time has looked so since its
// start, as far as anybody knows: so it says the same to an operator that has just
// started.
func (s *settling) isCurrent(state plan.EngineState, err error, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst := !s.hasAsked
	s.hasAsked = true
	isLate := state.Progress.Lag < 0 || state.Progress.Lag > currentWithin
	if err != nil || !state.Replication.IsReceiving || isLate || s.runID != state.RunID {
		s.runID, s.since, s.isSettled = state.RunID, time.Time{}, false
	}
	if err != nil || !state.Replication.IsReceiving || isLate {
		return false
	}
	if s.isSettled {
		return true
	}
	// One that may have all or not begins again.
	if s.since.IsZero() || !state.Replication.IsCurrent {
		s.since = now
		second, _, _ := strings.Cut(state.RunID, "/")
		if started, err := strconv.ParseInt(second, 10, 64); err == nil && isFirst {
			s.since = time.Unix(started, 0)
		}
	}
	s.isSettled = now.Sub(s.since) >= settleTime
	return s.isSettled
}
