// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

func TestAReplicaIsCurrentOnceItHasReceivedForAWhile(t *testing.T) {
	receiving := func(runID string) plan.EngineState {
		return plan.EngineState{RunID: runID, Replication: plan.Replication{IsReceiving: true, IsCurrent: true}}
	}
	starving := receiving("1000/a.pid")
	starving.Replication.IsCurrent = false
	late := receiving("1000/a.pid")
	late.Progress.Lag = time.Minute
	type look struct {
		after time.Duration
		state plan.EngineState
		err   error
		want  bool
	}
	// The member starts at 1000 seconds, and the looks begin 100 seconds later.
	for sentence, looks := range map[string][]look{
		"one that has run for long is at once":                       {{0, receiving("1000/a.pid"), nil, true}, {time.Second, receiving("1000/a.pid"), nil, true}},
		"one that has just started isn't":                            {{0, receiving("1099/a.pid"), nil, false}, {3 * time.Second, receiving("1099/a.pid"), nil, false}, {time.Second, receiving("1099/a.pid"), nil, true}},
		"one that is seen to begin isn't":                            {{0, plan.EngineState{RunID: "1000/a.pid"}, nil, false}, {time.Second, receiving("1000/a.pid"), nil, false}, {4 * time.Second, receiving("1000/a.pid"), nil, false}, {time.Second, receiving("1000/a.pid"), nil, true}},
		"one that was interrupted begins again":                      {{0, receiving("1000/a.pid"), nil, true}, {time.Second, plan.EngineState{RunID: "1000/a.pid"}, nil, false}, {time.Second, receiving("1000/a.pid"), nil, false}, {5 * time.Second, receiving("1000/a.pid"), nil, true}},
		"one that was started again begins again":                    {{0, receiving("1000/a.pid"), nil, true}, {time.Second, receiving("1101/a.pid"), nil, false}, {5 * time.Second, receiving("1101/a.pid"), nil, true}},
		"one that was started again in the same second, too":         {{0, receiving("1000/a.pid"), nil, true}, {time.Second, receiving("1000/b.pid"), nil, false}, {5 * time.Second, receiving("1000/b.pid"), nil, true}},
		"one that didn't answer begins again":                        {{0, plan.EngineState{}, errors.New("the connection fails"), false}, {time.Second, receiving("1000/a.pid"), nil, false}, {5 * time.Second, receiving("1000/a.pid"), nil, true}},
		"one that may have all stays what it was":                    {{0, receiving("1000/a.pid"), nil, true}, {time.Second, starving, nil, true}, {time.Second, receiving("1000/a.pid"), nil, true}},
		"one that may have all isn't current by that":                {{0, plan.EngineState{RunID: "1000/a.pid"}, nil, false}, {time.Second, starving, nil, false}, {time.Second, receiving("1000/a.pid"), nil, false}, {3 * time.Second, starving, nil, false}, {4 * time.Second, receiving("1000/a.pid"), nil, false}, {time.Second, receiving("1000/a.pid"), nil, true}},
		"one that may have all is what it was before anybody looked": {{0, starving, nil, true}, {time.Second, late, nil, false}},
		"one that is late begins again":                              {{0, receiving("1000/a.pid"), nil, true}, {time.Second, late, nil, false}, {time.Second, receiving("1000/a.pid"), nil, false}, {5 * time.Second, receiving("1000/a.pid"), nil, true}},
		"one whose start isn't known begins to count":                {{0, receiving("?"), nil, false}, {5 * time.Second, receiving("?"), nil, true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var s settling
			now := time.Unix(1100, 0)
			for i, look := range looks {
				now = now.Add(look.after)
				if got := s.isCurrent(look.state, look.err, now); got != look.want {
					t.Errorf("look %d says %t", i, got)
				}
			}
		})
	}
}
