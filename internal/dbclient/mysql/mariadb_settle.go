// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strconv"
	"sync"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// settleTime is for how long a replica of MariaDB has to receive before it counts
// as current. A source begins by looking for the place in its log, which takes
// seconds where the file is large, and until it sends something, a replica that
// lacks much says the same as one that lacks nothing.
const settleTime = 5 * time.Second

// settling remembers since when a member receives, as far as it was looked at.
type settling struct {
	mu       sync.Mutex
	hasAsked bool
	runID    string
	// since is zero while the member doesn't receive.
	since time.Time
}

// isSettled takes what a member says, or that it says nothing, and tells whether
// it has been receiving for long enough. One that is looked at for the first time
// has been doing so since its start, as far as anybody knows.
func (s *settling) isSettled(state plan.EngineState, err error, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst := !s.hasAsked
	s.hasAsked = true
	if err != nil || !state.Replication.IsReceiving {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() || s.runID != state.RunID {
		s.runID, s.since = state.RunID, now
		if started, err := strconv.ParseInt(state.RunID, 10, 64); err == nil && isFirst {
			s.since = time.Unix(started, 0)
		}
	}
	return now.Sub(s.since) >= settleTime
}
