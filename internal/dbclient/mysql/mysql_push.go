// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"strings"
)

// A replica acknowledges what it receives, when it receives it. One whose
// connection broke in between, or that wasn't to acknowledge yet, has a transaction
// that it is never sent again: the commit waits, though enough members have it,
// until a later one is acknowledged, which stands for all before. Where no client
// commits anything, since all of them wait, that never comes. So the operator
// commits something that changes nothing.

// mysqlPush is written to the binary log, and holds no lock while it waits.
const mysqlPush = "SET SESSION sql_log_bin = ON; FLUSH USER_RESOURCES; SET SESSION sql_log_bin = OFF"

// mysqlPushes is how many of them may wait at a time: each has a session of its own.
const mysqlPushes = 3

// mysqlWaiting asks for what commits wait: how many do, how many have been
// acknowledged so far, whether enough replicas are there that do so, and how many
// pushes wait.
const mysqlWaiting = `SELECT ` +
	`SUM(IF(VARIABLE_NAME = 'Rpl_semi_sync_source_wait_sessions', VARIABLE_VALUE, 0)), ` +
	`SUM(IF(VARIABLE_NAME = 'Rpl_semi_sync_source_yes_tx', VARIABLE_VALUE, 0)), ` +
	`SUM(IF(VARIABLE_NAME = 'Rpl_semi_sync_source_clients', VARIABLE_VALUE, 0)) >= @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, ` +
	`(SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'FLUSH USER_RESOURCES%') ` +
	`FROM performance_schema.global_status WHERE VARIABLE_NAME LIKE 'Rpl\_semi\_sync\_source\_%'`

// attend gives commits of a primary a push that have been waiting since the last
// time. What comes of it is seen the next time.
func (r mysqlReplicates) attend(ctx context.Context, c *Connection) {
	var waiting, acknowledged float64
	var pushes int
	var isServed bool
	err := call(ctx, func(ctx context.Context) error {
		return c.db.QueryRowContext(ctx, mysqlWaiting).Scan(&waiting, &acknowledged, &isServed, &pushes)
	})
	stands := err == nil && waiting > 0 && isServed
	c.mu.Lock()
	hasStood := c.stands && c.acknowledged == acknowledged
	c.stands, c.acknowledged = stands, acknowledged
	c.mu.Unlock()
	if !stands || !hasStood || pushes >= mysqlPushes {
		return
	}
	if r.do(ctx, c, mysqlPush) != nil {
		// If the session is still there, it is as it was.
		_ = r.do(ctx, c, "SET SESSION sql_log_bin = OFF")
	}
}

// waitsForReplicas tells whether a primary says so.
func waitsForReplicas(required string) bool {
	return required != "" && !strings.HasPrefix(required, "none")
}
