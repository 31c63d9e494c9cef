//go:build bench

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// engine is how a database of an engine is started bare, and asked.
type engine struct {
	name v1alpha1.DatabaseType
	// version and image are what both get.
	version, image string
	// bare makes a database in /data, starts its server without a configuration, and
	// returns once that has answered; a shell script.
	bare string
	// read is answered by any database; write changes something, and make makes
	// place for that. They end a command that has the database's address and login in
	// the variables host, port, username, password and database.
	ask               string
	read, make, write string
}

const (
	bareKeyValue = `cd /data; $SERVER --port 0 --unixsocket /tmp/socket --save '' >/dev/null &
until $CLIENT -s /tmp/socket ping 2>/dev/null | grep -q PONG; do sleep 0.02; done`
	askKeyValue = `REDISCLI_AUTH="$password" $CLIENT -e -h "$host" -p "$port" -n "$database" --user "$username" `

	askMySQL = `MYSQL_PWD="$password" $CLIENT --batch --skip-column-names --connect-timeout=3 --host="$host" --port="$port" --user="$username" "$database" --execute=`

	makeTable = `"CREATE TABLE IF NOT EXISTS gap (n INT); INSERT INTO gap VALUES (0)"`
	write     = `"UPDATE gap SET n = n + 1"`
	read      = `"SELECT 1"`
)

// allEngines are the five, each of the version that is its newest.
func allEngines() []engine {
	keyValue := func(name v1alpha1.DatabaseType, version, image, program string) engine {
		programs := strings.NewReplacer("$SERVER", program+"-server", "$CLIENT", program+"-cli")
		return engine{name, version, image, programs.Replace(bareKeyValue), programs.Replace(askKeyValue), "ping", "set gap 0", "incr gap"}
	}
	return []engine{
		keyValue(v1alpha1.DatabaseTypeRedis, "8.0", "redis:8.0", "redis"),
		keyValue(v1alpha1.DatabaseTypeValkey, "9.1", "valkey/valkey:9.1", "valkey"),
		{
			v1alpha1.DatabaseTypePostgreSQL, "18", "postgres:18",
			`initdb --pgdata=/data/db --no-sync --encoding=UTF8 --locale=C.UTF-8 --no-instructions >/dev/null
postgres -D /data/db -k /tmp -c listen_addresses= >/dev/null 2>&1 &
until psql --no-psqlrc --host=/tmp --dbname=postgres --command='SELECT 1' >/dev/null 2>&1; do sleep 0.02; done`,
			`PGPASSWORD="$password" PGCONNECT_TIMEOUT=3 psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$host" --port="$port" --username="$username" --dbname="$database" --command=`,
			read, makeTable, write,
		},
		{
			v1alpha1.DatabaseTypeMariaDB, "11.8", "mariadb:11.8",
			`mariadb-install-db --no-defaults --datadir=/data/db --cross-bootstrap --skip-test-db --auth-root-authentication-method=normal >/dev/null
mariadbd --no-defaults --datadir=/data/db --socket=/tmp/socket --skip-networking >/dev/null 2>&1 &
until mariadb --no-defaults --socket=/tmp/socket --user=root --execute='SELECT 1' >/dev/null 2>&1; do sleep 0.02; done`,
			strings.ReplaceAll(askMySQL, "$CLIENT", "mariadb --no-defaults --skip-ssl"), read, makeTable, write,
		},
		{
			v1alpha1.DatabaseTypeMySQL, "9.7", "mysql:9.7",
			`mysqld --no-defaults --secure-file-priv=NULL --initialize-insecure --datadir=/data/db >/dev/null 2>&1
mysqld --no-defaults --secure-file-priv=NULL --datadir=/data/db --socket=/tmp/socket --mysqlx=OFF --skip-networking --pid-file=/tmp/pid >/dev/null 2>&1 &
until mysql --no-defaults --socket=/tmp/socket --user=root --execute='SELECT 1' >/dev/null 2>&1; do sleep 0.02; done`,
			strings.ReplaceAll(askMySQL, "$CLIENT", "mysql --no-defaults"), read, makeTable, write,
		},
	}
}
