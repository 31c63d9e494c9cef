//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import "testing"

// The images are made of packages that nothing configured. This is where it
// shows whether a server misses what a maintainer script would have made.
func TestEveryImageMakesADataDirectoryAndServesOnAReadOnlyFileSystem(t *testing.T) {
	redis := "exec redis-server --dir /data --save '' --appendonly yes\n"
	valkey := "exec valkey-server --dir /data --save '' --appendonly yes\n"
	postgres := `initdb --pgdata=/data/db --locale=C.UTF-8 --encoding=UTF8 --auth=trust --username=operator
exec postgres -D /data/db -c unix_socket_directories=/run/database -c jit=on -c timezone=Europe/Berlin
`
	mariadb := `mariadb-install-db --no-defaults --datadir=/data/db --skip-name-resolve --skip-test-db --auth-root-authentication-method=normal
exec mariadbd --no-defaults --datadir=/data/db --socket=/run/database/sock --pid-file=/run/database/pid --log-bin=/data/db/binlog --server-id=1 --rpl-semi-sync-master-enabled=ON
`
	mysql := `mysqld --no-defaults --initialize-insecure --datadir=/data/db
exec mysqld --no-defaults --datadir=/data/db --socket=/run/database/sock --pid-file=/run/database/pid --mysqlx=OFF \
	--plugin-load-add=mysql_clone.so --plugin-load-add=semisync_source.so --plugin-load-add=semisync_replica.so
`
	for image, row := range map[string]struct {
		script, question, want string
		probe                  []string
	}{
		"redis:7.0":         {redis, `redis-cli info server | sed -n 's/^redis_version:\(7\.0\)\..*/\1/p'`, "7.0\n", []string{"redis-cli", "ping"}},
		"redis:8.0":         {redis, `redis-cli info server | sed -n 's/^redis_version:\(8\.0\)\..*/\1/p'`, "8.0\n", []string{"redis-cli", "ping"}},
		"valkey/valkey:8.1": {valkey, `valkey-cli info server | sed -n 's/^valkey_version:\(8\.1\)\..*/\1/p'`, "8.1\n", []string{"valkey-cli", "ping"}},
		"valkey/valkey:9.1": {valkey, `valkey-cli info server | sed -n 's/^valkey_version:\(9\.1\)\..*/\1/p'`, "9.1\n", []string{"valkey-cli", "ping"}},
		"postgres:17":       {postgres, pgQuestion, "17/off/UTF8/Europe/Berlin\n", pgProbe()},
		"postgres:18":       {postgres, pgQuestion, "18/off/UTF8/Europe/Berlin\n", pgProbe()},
		"mariadb:10.11":     {mariadb, mariadbQuestion, "10.11 ON\n", []string{"mariadb-admin", "--no-defaults", "--user=nobody", "--socket=/run/database/sock", "ping"}},
		"mariadb:11.8":      {mariadb, mariadbQuestion, "11.8 ON\n", []string{"mariadb-admin", "--no-defaults", "--user=nobody", "--socket=/run/database/sock", "ping"}},
		"mysql:9.7":         {mysql, mysqlQuestion, "9.7 3\n", []string{"mysqladmin", "--no-defaults", "--user=nobody", "--socket=/run/database/sock", "ping"}},
	} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			running := Start(t, script(image, "set -eu\n"+row.script))
			running.WaitFor(row.probe...)
			answer, err := running.Exec(t.Context(), "", "/bin/sh", "-c", row.question)
			if err != nil || answer != row.want {
				t.Errorf("it answered %q (%v), want %q", answer, err, row.want)
			}
			if exit := running.Stop(); exit.Code != 0 {
				t.Errorf("after SIGTERM it ended with %d", exit.Code)
			}
		})
	}
}

func pgProbe() []string { return []string{"pg_isready", "--host=/run/database", "--quiet"} }

const (
	pgQuestion = `psql --no-psqlrc --tuples-only --no-align --host=/run/database --username=operator postgres --command="
		SELECT current_setting('server_version_num')::int / 10000 || '/' || CASE WHEN pg_jit_available() THEN 'on' ELSE 'off' END || '/' ||
			getdatabaseencoding() || '/' || current_setting('timezone')"`
	mariadbQuestion = `mariadb --no-defaults --user=root --socket=/run/database/sock --skip-column-names --batch --execute="
		SELECT CONCAT(SUBSTRING_INDEX(VERSION(), '.', 2), ' ', IF(@@rpl_semi_sync_master_enabled, 'ON', 'OFF'))"`
	mysqlQuestion = `mysql --no-defaults --user=root --socket=/run/database/sock --skip-column-names --batch --execute="
		SELECT CONCAT(SUBSTRING_INDEX(VERSION(), '.', 2), ' ', COUNT(*)) FROM information_schema.plugins
		WHERE plugin_status = 'ACTIVE' AND plugin_name IN ('clone', 'rpl_semi_sync_source', 'rpl_semi_sync_replica')"`
)
