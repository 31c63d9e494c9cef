// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	historyA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	historyB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	noneYet  = "0000000000000000000000000000000000000000"
)

// replicaInfo is what a replica says that follows, with changes to it: an empty
// value takes a field away.
func replicaInfo(changes map[string]string) string {
	fields := map[string]string{
		"redis_version": "8.0.6", "run_id": "abc", "uptime_in_seconds": "100", "role": "slave", "loading": "0",
		"master_host": "db-0.db-members.shop.svc", "master_port": "6379", "master_link_status": "up", "master_last_io_seconds_ago": "1",
		"master_sync_in_progress": "0", "slave_read_repl_offset": "42", "slave_repl_offset": "42", "slave_priority": "100",
		"master_replid": historyA, "master_replid2": noneYet, "master_repl_offset": "42", "second_repl_offset": "-1", "repl_backlog_active": "1",
	}
	maps.Copy(fields, changes)
	var answer strings.Builder
	answer.WriteString("# Server\r\n")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] != "" {
			answer.WriteString(name + ":" + fields[name] + "\r\n")
		}
	}
	return answer.String()
}

// replicaState is what State gives of replicaInfo(nil), with changes to it.
func replicaState(change func(*plan.EngineState)) plan.EngineState {
	state := plan.EngineState{
		Role: v1alpha1.MemberRoleReplica, Version: "8.0.6", RunID: "abc",
		Replication: plan.Replication{Source: "db-0.db-members.shop.svc", IsReceiving: true, IsCurrent: true, Acknowledges: true},
		Progress:    plan.Progress{Position: historyA + ":42", IsDrained: true},
	}
	change(&state)
	return state
}

const primaryInfo = "# Server\r\nredis_version:8.0.6\r\nrun_id:abc\r\n\r\n# Replication\r\nrole:master\r\n" +
	"slave0:ip=db-2.db-members.shop.svc,port=6379,state=online,offset=9,lag=0\r\nslave1:ip=10.0.0.7,port=6379,state=wait_bgsave,offset=0,lag=0,type=replica\r\n" +
	"slave2:ip=db-1.db-members.shop.svc,port=6379,state=online,offset=7,lag=1\r\nslave3:ip=db-1.db-members.shop.svc,port=6379,state=online,offset=7,lag=9\r\n" +
	"slave_priority:100\r\nmaster_replid:" + historyB + "\r\nmaster_replid2:" + historyA + "\r\nmaster_repl_offset:9\r\nsecond_repl_offset:6\r\n# Persistence\r\nloading:0\r\n"

func TestInfoIsRead(t *testing.T) {
	for sentence, row := range map[string]struct {
		info string
		want plan.EngineState
	}{
		"of a primary that was promoted": {primaryInfo, plan.EngineState{
			Role: v1alpha1.MemberRolePrimary, Version: "8.0.6", RunID: "abc",
			Replication: plan.Replication{Required: "2 of ", Followers: "10.0.0.7,db-1,db-2"},
			Progress:    plan.Progress{Position: historyB + ":9," + historyA + ":5", IsDrained: true},
		}},
		"of a replica that follows": {replicaInfo(nil), replicaState(func(*plan.EngineState) {})},
		"of a replica in the middle of a command": {
			replicaInfo(map[string]string{"slave_read_repl_offset": "50"}),
			replicaState(func(s *plan.EngineState) { s.Progress.IsDrained = false }),
		},
		"of a replica whose source is silent, but not for long": {
			replicaInfo(map[string]string{"master_last_io_seconds_ago": "14"}), replicaState(func(*plan.EngineState) {}),
		},
		"without a position where that is nonsense": {
			replicaInfo(map[string]string{"master_replid": "?", "master_repl_offset": "-1"}),
			replicaState(func(s *plan.EngineState) { s.Progress.Position = "" }),
		},
		"without a former history that would end behind the position": {
			replicaInfo(map[string]string{"master_replid2": historyB, "second_repl_offset": "44"}), replicaState(func(*plan.EngineState) {}),
		},
		"of Valkey, which says what Redis it is like": {
			replicaInfo(map[string]string{"valkey_version": "9.1.2"}), replicaState(func(s *plan.EngineState) { s.Version = "9.1.2" }),
		},
	} {
		t.Run(sentence, func(t *testing.T) { checkState(t, row.info, row.want) })
	}
}

func TestInfoIsReadOfAReplicaWithoutItsSource(t *testing.T) {
	for sentence, row := range map[string]struct {
		info string
		want plan.EngineState
	}{
		"of a replica that was just cut off": {
			replicaInfo(map[string]string{"master_link_status": "down", "master_link_down_since_seconds": "4"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{Source: s.Replication.Source}
				s.Progress.Lag = 4 * time.Second
			}),
		},
		"of a replica that was cut off for long": {
			replicaInfo(map[string]string{"master_link_status": "down", "master_link_down_since_seconds": "5"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{Source: s.Replication.Source, Failure: "it doesn't reach its source, or isn't taken as a replica"}
				s.Progress.Lag = 5 * time.Second
			}),
		},
		"of a fenced replica": {
			replicaInfo(map[string]string{"master_host": "127.0.0.1", "master_port": "1", "master_link_status": "down", "master_link_down_since_seconds": "0"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{}
				s.Progress.Lag = time.Second
			}),
		},
		"of a replica that has restarted, and knows no position": {
			replicaInfo(map[string]string{"master_link_status": "down", "master_link_down_since_seconds": "-1", "repl_backlog_active": "0", "uptime_in_seconds": "4"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{Source: s.Replication.Source}
				s.Progress = plan.Progress{IsDrained: true, Lag: -1}
			}),
		},
		"of one that has never reached its source": {
			replicaInfo(map[string]string{"master_link_status": "down", "master_link_down_since_seconds": "-1", "repl_backlog_active": "0"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{Source: s.Replication.Source, Failure: "it doesn't reach its source, or isn't taken as a replica"}
				s.Progress = plan.Progress{IsDrained: true, Lag: -1}
			}),
		},
		"of a replica that gets a copy": {
			replicaInfo(map[string]string{"master_link_status": "down", "master_link_down_since_seconds": "-1", "repl_backlog_active": "0", "master_sync_in_progress": "1"}),
			replicaState(func(s *plan.EngineState) {
				s.Replication = plan.Replication{Source: s.Replication.Source}
				s.Progress = plan.Progress{IsDrained: true, Lag: -1}
			}),
		},
		"of a replica that loads a copy in the place of its data": {
			replicaInfo(map[string]string{"loading": "1", "master_link_status": "down", "master_link_down_since_seconds": "60"}),
			replicaState(func(s *plan.EngineState) {
				s.IsLoading = true
				s.Replication = plan.Replication{Source: s.Replication.Source}
				s.Progress = plan.Progress{IsDrained: true, Lag: -1}
			}),
		},
	} {
		t.Run(sentence, func(t *testing.T) { checkState(t, row.info, row.want) })
	}
}

func checkState(t *testing.T, info string, want plan.EngineState) {
	t.Helper()
	if got, err := parseInfo(info).state("2"); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
}

func TestInfoIsRefused(t *testing.T) {
	for sentence, row := range map[string]struct{ info, required, want string }{
		"without a role":                              {"redis_version:8.0.6\r\n", "0", "what role"},
		"where it is nonsense":                        {"\x00:\n::\n", "0", "what role"},
		"of a primary that doesn't say what it needs": {primaryInfo, "", "how many replicas"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, err := parseInfo(row.info).state(row.required); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %+v and %v, want %q", got, err, row.want)
			}
		})
	}
}

func TestFollowersHaveAllThatThePrimaryHas(t *testing.T) {
	const copies = "slave1:ip=b,port=1,state=send_bulk,offset=0,lag=0\n"
	for sentence, row := range map[string]struct {
		info string
		want bool
	}{
		"as there are none":                       {"master_repl_offset:9\n", true},
		"as all have confirmed it":                {"master_repl_offset:9\nslave0:ip=a,port=1,state=online,offset=9,lag=0\n", true},
		"not, as one hasn't":                      {"master_repl_offset:9\nslave0:ip=a,port=1,state=online,offset=9,lag=0\nslave1:ip=b,port=1,state=online,offset=8,lag=0\n", false},
		"but for one that doesn't follow yet":     {"master_repl_offset:9\nslave0:ip=a,port=1,state=online,offset=9,lag=0\n" + copies, true},
		"not, as the only one hasn't said a word": {"master_repl_offset:9\nslave0:ip=a,port=1,state=online\n", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := parseInfo(row.info).followersHaveAll(); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func FuzzInfoNeverBreaksTheState(f *testing.F) {
	f.Add(primaryInfo, "1")
	f.Add(replicaInfo(nil), "")
	f.Fuzz(func(t *testing.T, answer, required string) {
		state, err := parseInfo(answer).state(required)
		if err != nil && state != (plan.EngineState{}) {
			t.Errorf("%q gives both %+v and %v", answer, state, err)
		}
		if state.Replication.IsCurrent && state.IsLoading {
			t.Errorf("%q: it loads, and is current", answer)
		}
	})
}
