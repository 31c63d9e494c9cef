//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"testing"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestMembersCopyAndGoOnAfterEachRestart(t *testing.T) {
	c := newCluster(t, "mariadb:11.8", 3)
	primary, second, third := c.members[0], c.members[1], c.members[2]
	c.insert(primary, 2, 3)
	for _, replica := range []running{second, third} {
		c.isCurrent(replica, primary)
		if got := c.rows(replica); got != "1 2 3" {
			t.Errorf("%s has %q", replica.Name(), got)
		}
		if state := c.state(replica); state.Role != v1alpha1.MemberRoleReplica || state.Replication.Acknowledges || state.Replication.Failure != "" {
			t.Errorf("%s says %+v", replica.Name(), state)
		}
	}
	c.awaitState(primary, "knows its followers", func(state plan.EngineState) bool { return state.Replication.Followers == "orders-1,orders-2" })

	// With nobody's help.
	second.Kill()
	c.insert(primary, 4)
	measured(t, "a replica is killed, and is current again", func() {
		c.again(second)
		c.isCurrent(second, primary)
	})
	primary.Kill()
	c.again(primary)
	if state := c.state(primary); state.Role != v1alpha1.MemberRolePrimary {
		t.Errorf("the primary says %+v", state)
	}
	third.Stop()
	c.again(third)
	c.insert(primary, 5)
	for _, replica := range []running{second, third} {
		c.isCurrent(replica, primary)
		if got := c.rows(replica); got != "1 2 3 4 5" {
			t.Errorf("%s has %q", replica.Name(), got)
		}
	}
}
