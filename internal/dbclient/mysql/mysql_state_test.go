// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// followingMySQL is a replica that has all that its source has, at second 1000.
func followingMySQL(change func(*mysqlMember)) mysqlMember {
	member := mysqlMember{
		isReadOnly: true, executed: "u:1-5", host: "orders-0.orders-members", port: 3306, receiver: "ON", received: "u:2-5", isDrained: true, applier: "ON",
		now: 1000, heartbeat: 999.5, queuedCommitted: 900, queuedAt: 900.01,
	}
	change(&member)
	return member
}

func TestAReplicaOfMySQLIsCurrentIfItHasNothingToCatchUpWith(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*mysqlMember)
		want   time.Duration
	}{
		"nothing happens":                              {func(*mysqlMember) {}, 0},
		"it is sent without a pause":                   {func(m *mysqlMember) { m.queuedCommitted, m.queuedAt = 999.7, 999.8 }, 0},
		"the clocks differ a little":                   {func(m *mysqlMember) { m.queuedCommitted, m.queuedAt = 1001, 999.8 }, 0},
		"what it is sent is old":                       {func(m *mysqlMember) { m.queuedCommitted, m.queuedAt = 400, 999.8 }, 600 * time.Second},
		"what it executes is old":                      {func(m *mysqlMember) { m.isDrained, m.appliedCommitted, m.applyingSince = false, 600, 999 }, 300 * time.Second},
		"it executes the first after a long silence":   {func(m *mysqlMember) { m.isDrained, m.appliedCommitted, m.applyingSince = false, 900, 999 }, 0},
		"it executes something for a minute":           {func(m *mysqlMember) { m.isDrained, m.appliedCommitted, m.applyingSince = false, 900, 940 }, 60 * time.Second},
		"it has received, and not begun to execute":    {func(m *mysqlMember) { m.isDrained = false }, 0},
		"it was sent nothing yet":                      {func(m *mysqlMember) { m.heartbeat, m.queuedCommitted, m.queuedAt = 0, 0, 0 }, -1},
		"its source has been silent for a minute":      {func(m *mysqlMember) { m.heartbeat = 940 }, 60 * time.Second},
		"it receives something large":                  {func(m *mysqlMember) { m.heartbeat, m.queueingSince = 900.02, 995 }, 0},
		"it isn't connected":                           {func(m *mysqlMember) { m.receiver = "CONNECTING" }, -1},
		"it doesn't execute":                           {func(m *mysqlMember) { m.applier = "OFF" }, -1},
		"it is fenced":                                 {func(m *mysqlMember) { m.isFenced = true }, -1},
		"it takes writes, whatever its source said":    {func(m *mysqlMember) { m.isReadOnly = false }, -1},
		"it follows nobody, and never has":             {func(m *mysqlMember) { *m = mysqlMember{isReadOnly: true} }, -1},
		"what it is sent is just not called old":       {func(m *mysqlMember) { m.queuedCommitted, m.queuedAt = 990.5, 999.8 }, 0},
		"what it was sent last was old, a minute ago ": {func(m *mysqlMember) { m.queuedCommitted, m.queuedAt = 400, 940 }, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := followingMySQL(row.change)
			if got := member.lag(); got != row.want || member.replication().IsCurrent != (row.want == 0) || member.progress().Lag != row.want {
				t.Errorf("it lags by %s, want %s; it says %+v", got, row.want, member.replication())
			}
		})
	}
}

func TestAMemberOfMySQLSaysWhatItIs(t *testing.T) {
	for sentence, row := range map[string]struct {
		member mysqlMember
		want   plan.Replication
	}{
		"a primary":                   {mysqlMember{acknowledges: true, count: 2}, plan.Replication{Required: "none"}},
		"a primary that waits":        {mysqlMember{waits: true, count: 2}, plan.Replication{Required: "2 of "}},
		"a member that is new":        {mysqlMember{isReadOnly: true, waits: true, count: 1}, plan.Replication{}},
		"a replica":                   {followingMySQL(func(*mysqlMember) {}), plan.Replication{Source: "orders-0.orders-members", IsReceiving: true, IsCurrent: true}},
		"a replica that acknowledges": {followingMySQL(func(m *mysqlMember) { m.acknowledges = true }), plan.Replication{Source: "orders-0.orders-members", IsReceiving: true, IsCurrent: true, Acknowledges: true}},
		"a fenced one": {followingMySQL(func(m *mysqlMember) {
			m.acknowledges, m.isFenced, m.receiver, m.receiveError = true, true, "OFF", 2003
		}), plan.Replication{}},
		"a fenced one that fails": {followingMySQL(func(m *mysqlMember) {
			m.isFenced, m.applier, m.executeError = true, "OFF", 1205
		}), plan.Replication{Failure: "it can't execute what it has received (error 1205)"}},
		"one that connects for the first time": {followingMySQL(func(m *mysqlMember) { m.receiver = "CONNECTING" }), plan.Replication{Source: "orders-0.orders-members"}},
		"one that has stopped by itself": {followingMySQL(func(m *mysqlMember) {
			m.receiver, m.receiveError, m.receiveMessage = "OFF", 13114, "… the replica has more GTIDs than the source has …"
		}), plan.Replication{Source: "orders-0.orders-members", Failure: "it has transactions that its source lacks", IsApart: true}},
		"one that may go on by itself": {followingMySQL(func(m *mysqlMember) {
			m.receiver, m.receiveError, m.receiveMessage = "OFF", 13114, "… a replica with the same server_uuid has connected …"
		}), plan.Replication{Source: "orders-0.orders-members", Failure: "it can't copy from its source (error 13114)"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := row.member.replication(); got != row.want {
				t.Errorf("it says %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestAPositionOfMySQLIsAllThatAMemberHas(t *testing.T) {
	for sentence, row := range map[string]struct {
		executed, received, want string
	}{
		"nothing":                    {"", "", "none"},
		"what it executed":           {"u:1-5,\nv:1", "", "u:1-5,v:1"},
		"what it received":           {"", "u:1", "u:1"},
		"both, in whatever relation": {"u:1-5", "u:4-9,\nv:2", "u:1-5,u:4-9,v:2"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := (mysqlMember{executed: row.executed, received: row.received}).progress().Position; got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

func TestTheReplicatorsPasswordOfMySQLFitsAndTellsNothing(t *testing.T) {
	for _, admin := range []string{"", "short", strings.Repeat("long", 100)} {
		password := mysqlReplicatorPassword(admin)
		if len(password) != 32 || strings.Trim(password, "0123456789abcdef") != "" || admin != "" && strings.Contains(password, admin) {
			t.Errorf("of %q it is %q", admin, password)
		}
	}
}
