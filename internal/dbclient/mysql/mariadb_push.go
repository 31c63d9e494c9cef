// SPDX-License-Identifier: Apache-2.0

package mysql

import "context"

// mariaDBPush is mysqlPush: a commit of MariaDB, too, waits for ever if its
// replicas got it before they were to acknowledge, or their answer was lost.
const mariaDBPush = "FLUSH USER_RESOURCES"

// mariaDBWaiting is mysqlWaiting. One replica is all that a commit waits for.
const mariaDBWaiting = `SELECT ` +
	`SUM(IF(VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_WAIT_SESSIONS', VARIABLE_VALUE, 0)), ` +
	`SUM(IF(VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_YES_TX', VARIABLE_VALUE, 0)), ` +
	`SUM(IF(VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS', VARIABLE_VALUE, 0)) >= 1, ` +
	`(SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'FLUSH USER_RESOURCES%') ` +
	`FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'RPL\_SEMI\_SYNC\_MASTER\_%'`

// attend gives commits of a primary a push that have been waiting since the last
// time. What comes of it is seen the next time.
func (r mariaDBReplicates) attend(ctx context.Context, c *Connection) {
	var waiting, acknowledged float64
	var pushes int
	var isServed bool
	err := call(ctx, func(ctx context.Context) error {
		return c.db.QueryRowContext(ctx, mariaDBWaiting).Scan(&waiting, &acknowledged, &isServed, &pushes)
	})
	stands := err == nil && waiting > 0 && isServed
	c.mu.Lock()
	hasStood := c.stands && c.acknowledged == acknowledged
	c.stands, c.acknowledged = stands, acknowledged
	c.mu.Unlock()
	if !stands || !hasStood || pushes >= mysqlPushes {
		return
	}
	// A session that isn't there any more is made anew, as it should be.
	_ = r.do(ctx, c, "SET SESSION sql_log_bin = ON", mariaDBPush)
	_ = r.do(ctx, c, "SET SESSION sql_log_bin = OFF")
}
