// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"maps"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// following is a member that copies from another one and has all that it has.
func following(changes map[string]string) mariaDBMember {
	slave := map[string]string{
		"Master_Host": "db-0.db-members.ns.svc", "Master_Port": "3306", "Slave_IO_Running": "Yes", "Slave_SQL_Running": "Yes", "Using_Gtid": "Slave_Pos",
		"Gtid_IO_Pos": "0-1-7", "Seconds_Behind_Master": "0", "Last_IO_Errno": "0", "Last_SQL_Errno": "0",
	}
	maps.Copy(slave, changes)
	return mariaDBMember{
		history: "0-1-7", executed: "0-1-7", isReadOnly: true, acknowledges: true, slave: slave,
		row: mariaDBRole{role: roleReplica, host: "db-0.db-members.ns.svc", port: 3306, acknowledges: true},
	}
}

func TestWhatAMariaDBReplicaSaysOfItself(t *testing.T) {
	const source = "db-0.db-members.ns.svc"
	receives := plan.Replication{Source: source, IsReceiving: true, IsCurrent: true, Acknowledges: true}
	stands := plan.Replication{Source: source, Acknowledges: true}
	failing := func(words string, isApart bool) plan.Replication {
		r := stands
		r.Failure, r.IsApart = words, isApart
		return r
	}
	late, unexecuted := receives, receives
	late.IsCurrent = false
	unexecuted.IsCurrent, unexecuted.Failure, unexecuted.IsApart = false, "its data aren't those of its source: executing what it received fails with error 1062", true
	for sentence, row := range map[string]struct {
		slave map[string]string
		want  plan.Replication
		lag   time.Duration
	}{
		"it has all":                       {nil, receives, 0},
		"it is a bit behind":               {map[string]string{"Seconds_Behind_Master": "9"}, receives, 9 * time.Second},
		"it has much to catch up with":     {map[string]string{"Seconds_Behind_Master": "11"}, late, 11 * time.Second},
		"it looks for its source":          {map[string]string{"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": ""}, stands, -1},
		"it finds nobody":                  {map[string]string{"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": "", "Last_IO_Errno": "2003"}, failing("it can't reach its source", false), -1},
		"its source hangs up":              {map[string]string{"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": "", "Last_IO_Errno": "2013"}, failing("it can't reach its source", false), -1},
		"it has the wrong password":        {map[string]string{"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": "", "Last_IO_Errno": "1045"}, failing("its source refuses the password of the account that members copy with", false), -1},
		"it has more than its source":      {map[string]string{"Slave_IO_Running": "No", "Seconds_Behind_Master": "", "Last_IO_Errno": "1236", "Last_IO_Error": "requested to start from GTID 0-1-9, which is not in the master's binlog"}, failing("it has changes that its source hasn't", true), -1},
		"its source has forgotten":         {map[string]string{"Slave_IO_Running": "No", "Seconds_Behind_Master": "", "Last_IO_Errno": "1236", "Last_IO_Error": "Could not find GTID state requested, binlog files have been purged"}, failing("its source no longer has the changes that it needs", true), -1},
		"its source's log is broken":       {map[string]string{"Slave_IO_Running": "No", "Seconds_Behind_Master": "", "Last_IO_Errno": "1236", "Last_IO_Error": "event read from binlog did not pass crc check"}, failing("its source can't read its own log of changes", false), -1},
		"it can't execute what it got":     {map[string]string{"Slave_SQL_Running": "No", "Seconds_Behind_Master": "", "Last_SQL_Errno": "1062"}, unexecuted, -1},
		"an error that isn't known":        {map[string]string{"Slave_IO_Running": "No", "Seconds_Behind_Master": "", "Last_IO_Errno": "4242", "Last_IO_Error": "10.0.0.7 said s3cret"}, failing("copying from its source fails with error 4242", false), -1},
		"it copies from another than told": {map[string]string{"Master_Host": "db-9.db-members.ns.svc"}, plan.Replication{}, 0},
		"what it had isn't executed yet":   {map[string]string{"Using_Gtid": "No"}, plan.Replication{Failure: "what it had received before its start can't be executed"}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := following(row.slave)
			if got := member.replication(); got != row.want {
				t.Errorf("it says\n%+v, want\n%+v", got, row.want)
			}
			if got := member.progress().Lag; got != row.lag {
				t.Errorf("it is %s behind, want %s", got, row.lag)
			}
			if words := member.replication().Failure; strings.Contains(words, "10.0.0.7") || strings.Contains(words, "s3cret") {
				t.Errorf("it says %q", words)
			}
		})
	}
}

func TestHowFarAMariaDBMemberIs(t *testing.T) {
	for sentence, row := range map[string]struct {
		history, executed string
		slave             map[string]string
		want              string
		isDrained         bool
	}{
		"a new one":                                {"", "", nil, "/", true},
		"a primary":                                {"0-1-5,0-2-9", "0-1-5", nil, "0-1-5,0-2-9/", true},
		"a replica that has executed all":          {"0-1-7", "0-1-7", map[string]string{"Gtid_IO_Pos": "0-1-7"}, "0-1-7/", true},
		"a replica that has more":                  {"0-1-7", "0-1-7", map[string]string{"Gtid_IO_Pos": "0-1-12"}, "0-1-7/0-1-12", false},
		"a replica that was started and told less": {"0-1-7", "0-1-7", map[string]string{"Gtid_IO_Pos": ""}, "0-1-7/", true},
		"one whose log of changes begins later":    {"", "0-1-7", map[string]string{"Gtid_IO_Pos": ""}, "0-1-7/", true},
		"one that doesn't know":                    {"0-1-7", "0-1-7", map[string]string{"Using_Gtid": "No"}, "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := mariaDBMember{history: row.history, executed: row.executed, slave: row.slave}
			got := member.progress()
			if got.Position != row.want || got.IsDrained != row.isDrained {
				t.Errorf("it is at %q (%t), want %q (%t)", got.Position, got.IsDrained, row.want, row.isDrained)
			}
		})
	}
}

func TestAMariaDBPrimaryWaitsOnlyIfAllOfItIsSet(t *testing.T) {
	whole := mariaDBMember{waits: true, waitsAlone: true, timeout: "18446744073709551615", waitPoint: "AFTER_SYNC", followers: []string{"db-1", "db-2"}}
	if got, want := whole.replication(), (plan.Replication{Required: "1 of ", Followers: "db-1,db-2"}); got != want {
		t.Errorf("it says %+v, want %+v", got, want)
	}
	for sentence, change := range map[string]func(*mariaDBMember){
		"it doesn't wait":                 func(m *mariaDBMember) { m.waits = false },
		"nor where nobody is attached":    func(m *mariaDBMember) { m.waitsAlone = false },
		"it gives up":                     func(m *mariaDBMember) { m.timeout = "10000" },
		"others see the commit before it": func(m *mariaDBMember) { m.waitPoint = "AFTER_COMMIT" },
	} {
		t.Run(sentence, func(t *testing.T) {
			member := whole
			change(&member)
			if got := member.replication().Required; got != "none" {
				t.Errorf("it says that it waits for %q", got)
			}
		})
	}
}

func TestThePasswordOfTheReplicatorIsNoMoreThanAServerRemembers(t *testing.T) {
	// printf %s secret | sha256sum | cut -c 1-40
	if got := replicatorPassword("secret"); got != "2bb80d537b1da3e38bd30361aa855686bde0eacd" {
		t.Errorf("it is %s", got)
	}
}
