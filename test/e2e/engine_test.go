//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coolops.cn/database-manager/internal/engine/catalog"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// engine is how an application talks to a database of an engine.
type engine struct {
	name v1alpha1.DatabaseType
	// image has the engine's command-line client.
	image string
	// script sends a query, which is its arguments, to the database that the
	// files in /credentials describe, and prints the answer alone.
	script string
	// writeQuery and readQuery are queries to write a value and to read it; the
	// answer to the second is empty where there is none.
	writeQuery func(key, value string) []string
	readQuery  func(key string) []string
	// recordScript writes the record $1 by the script in $SCRIPT, and succeeds only if
	// the database has acknowledged it. recordsQuery lists the records that there are,
	// which recordsTable, if it isn't empty, has made place for.
	recordScript, recordsTable string
	recordsQuery               []string
	// dial connects the engine's Go driver, by the single values of the
	// credentials, and dialURI by their uri alone.
	dial, dialURI func(credentials map[string]string, dial dialFunc) (session, error)
	// forbidden are queries that the application's account may not make: they are
	// about the server, or about accounts.
	forbidden [][]string
	// settingScript prints the value of the parameter $1, as the server shows it to
	// the operator's account. live is a parameter that a running server takes, and
	// fixed one that it doesn't.
	settingScript string
	live, fixed   parameter
	// keptScript prints what the server keeps of the accounts' passwords.
	keptScript string
	// badPassword is one that the engine can't be told; empty where there is none.
	badPassword string
	// refusesNewer is true if a version doesn't open the data of the one before.
	refusesNewer bool
}

// session is a connection of a Go driver.
type session interface {
	ask(ctx context.Context, query ...string) (string, error)
	close() error
}

const (
	keyValueScript = `export REDISCLI_AUTH="$(cat /credentials/password)"
exec $PROGRAM -e -h "$(cat /credentials/host)" -p "$(cat /credentials/port)" -n "$(cat /credentials/database)" --user "$(cat /credentials/username)" "$@"`

	mysqlScript = `export MYSQL_PWD="$(cat /credentials/password)"
exec $PROGRAM --batch --skip-column-names --connect-timeout=3 --host="$(cat /credentials/host)" --port="$(cat /credentials/port)" --user="$(cat /credentials/username)" --execute="$1" "$(cat /credentials/database)"`

	// What is written is acknowledged once a replica has it, which is what WAIT tells;
	// it also tells so of what was refused.
	keyValueRecord = `answer="$(printf 'sadd records %s\nwait 1 1500\n' "$1" | timeout 3 sh -c "$SCRIPT" client | tr '\n' ' ')"
case $answer in "1 "[1-9]*) ;; *) exit 1 ;; esac`

	// A commit whose waiting was cancelled ends with a warning.
	sqlRecord = `timeout 3 sh -c "$SCRIPT" client "INSERT INTO records VALUES ($1)" 2>/tmp/warning && ! grep -q WARNING /tmp/warning`

	recordsTable = "CREATE TABLE IF NOT EXISTS records (number INT PRIMARY KEY); "

	keyValueSetting   = `REDISCLI_AUTH="$(cat /secrets/admin/password)" $PROGRAM --user operator config get "$1" | tail -n 1`
	mysqlSetting      = `MYSQL_PWD="$(cat /secrets/admin/password)" $PROGRAM --batch --skip-column-names --host=127.0.0.1 --user=operator --execute="SELECT @@GLOBAL.$1"`
	postgresqlSetting = `PGPASSWORD="$(cat /secrets/admin/password)" psql --no-psqlrc --no-align --tuples-only --host=127.0.0.1 --username=operator --dbname=postgres --command="SHOW $1"`

	keyValueKept   = `REDISCLI_AUTH="$(cat /secrets/admin/password)" $PROGRAM --user operator acl list`
	mysqlKept      = `MYSQL_PWD="$(cat /secrets/admin/password)" $PROGRAM --batch --skip-column-names --host=127.0.0.1 --user=operator --execute="$QUERY"`
	postgresqlKept = `PGPASSWORD="$(cat /secrets/admin/password)" psql --no-psqlrc --no-align --tuples-only --host=127.0.0.1 --username=operator --dbname=postgres --command="SELECT rolname, rolpassword FROM pg_authid"`

	postgresqlScript = `export PGPASSWORD="$(cat /credentials/password)" PGCONNECT_TIMEOUT=3
exec psql --no-psqlrc --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 --host="$(cat /credentials/host)" --port="$(cat /credentials/port)" --username="$(cat /credentials/username)" --dbname="$(cat /credentials/database)" --command="$1"`
)

// allEngines is the table of engines. The first is the one that is used where
// it doesn't matter which.
func allEngines() []engine {
	return []engine{
		keyValue(v1alpha1.DatabaseTypeRedis, "redis-cli"),
		keyValue(v1alpha1.DatabaseTypeValkey, "valkey-cli"),
		{
			name: v1alpha1.DatabaseTypePostgreSQL, image: newestImage(v1alpha1.DatabaseTypePostgreSQL), script: postgresqlScript,
			writeQuery: sqlWrite("INSERT INTO items VALUES ('%s', '%s') ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"),
			readQuery:  sqlRead, recordScript: sqlRecord, recordsTable: recordsTable, recordsQuery: []string{"SELECT number FROM records"}, dial: dialPostgreSQL, dialURI: dialPostgreSQLURI,
			forbidden:  [][]string{{"CREATE ROLE other"}, {"ALTER SYSTEM SET work_mem = '1MB'"}, {"SELECT pg_read_file('/data/engine')"}, {"CREATE DATABASE other"}},
			keptScript: postgresqlKept, settingScript: postgresqlSetting, live: parameter{"work_mem", "8MB", "8MB", "4MB"}, fixed: parameter{"max_connections", "120", "120", "100"},
			badPassword: "not UTF-8: \xff", refusesNewer: true,
		},
		{
			name: v1alpha1.DatabaseTypeMariaDB, image: newestImage(v1alpha1.DatabaseTypeMariaDB),
			// Its client insists on encryption where the server has a certificate, and older servers have none.
			script:     strings.ReplaceAll(mysqlScript, "$PROGRAM", "mariadb --no-defaults --skip-ssl"),
			writeQuery: sqlWrite("REPLACE INTO items VALUES ('%s', '%s')"),
			readQuery:  sqlRead, recordScript: sqlRecord, recordsTable: recordsTable, recordsQuery: []string{"SELECT number FROM records"}, dial: dialMySQL, dialURI: dialMySQLURI,
			forbidden:     mysqlForbidden(),
			settingScript: strings.ReplaceAll(mysqlSetting, "$PROGRAM", "mariadb --no-defaults --skip-ssl"),
			keptScript:    strings.NewReplacer("$PROGRAM", "mariadb --no-defaults --skip-ssl", "$QUERY", "SELECT User, Priv FROM mysql.global_priv").Replace(mysqlKept),
			live:          parameter{"max_connections", "120", "120", "151"}, fixed: parameter{"innodb_ft_min_token_size", "2", "2", "3"},
		},
		{
			name: v1alpha1.DatabaseTypeMySQL, image: newestImage(v1alpha1.DatabaseTypeMySQL),
			script:     strings.ReplaceAll(mysqlScript, "$PROGRAM", "mysql --no-defaults"),
			writeQuery: sqlWrite("REPLACE INTO items VALUES ('%s', '%s')"),
			readQuery:  sqlRead, recordScript: sqlRecord, recordsTable: recordsTable, recordsQuery: []string{"SELECT number FROM records"}, dial: dialMySQL, dialURI: dialMySQLURI,
			forbidden:     mysqlForbidden(),
			settingScript: strings.ReplaceAll(mysqlSetting, "$PROGRAM", "mysql --no-defaults"),
			keptScript:    strings.NewReplacer("$PROGRAM", "mysql --no-defaults", "$QUERY", "SELECT User, authentication_string FROM mysql.user").Replace(mysqlKept),
			live:          parameter{"max_connections", "120", "120", "151"}, fixed: parameter{"innodb_ft_min_token_size", "2", "2", "3"},
		},
	}
}

// anyEngine is the one whose databases are made the fastest.
func anyEngine() engine { return allEngines()[0] }

// enginesOnce are those that a test looks at which costs much: one, unless all
// is to be tested.
func enginesOnce() []engine {
	engines := allEngines()
	if !env.isFull {
		return engines[:1]
	}
	isNamed := func(e engine) bool { return len(env.engines) == 0 || slices.Contains(env.engines, string(e.name)) }
	return slices.DeleteFunc(engines, func(e engine) bool { return !isNamed(e) })
}

func keyValue(name v1alpha1.DatabaseType, program string) engine {
	return engine{
		name: name, image: newestImage(name), script: strings.ReplaceAll(keyValueScript, "$PROGRAM", program),
		writeQuery:   func(key, value string) []string { return []string{"set", key, value} },
		readQuery:    func(key string) []string { return []string{"get", key} },
		recordScript: keyValueRecord, recordsQuery: []string{"smembers", "records"},
		dial: dialRedis, dialURI: dialRedisURI,
		settingScript: strings.ReplaceAll(keyValueSetting, "$PROGRAM", program),
		keptScript:    strings.ReplaceAll(keyValueKept, "$PROGRAM", program),
		live:          parameter{"tcp-keepalive", "77", "77", "60"}, fixed: parameter{"tcp-backlog", "600", "600", "511"},
		forbidden: [][]string{{"config", "get", "*"}, {"acl", "list"}, {"shutdown", "nosave"}, {"replicaof", "no", "one"}},
	}
}

const itemsTable = "CREATE TABLE IF NOT EXISTS items (name VARCHAR(64) PRIMARY KEY, value VARCHAR(64)); "

// sqlWrite and sqlRead make the table first: a database that lost its data has
// none.
func sqlWrite(statement string) func(key, value string) []string {
	return func(key, value string) []string { return []string{itemsTable + fmt.Sprintf(statement, key, value)} }
}

func sqlRead(key string) []string {
	return []string{itemsTable + fmt.Sprintf("SELECT value FROM items WHERE name = '%s'", key)}
}

func mysqlForbidden() [][]string {
	return [][]string{{"CREATE USER other"}, {"SET GLOBAL max_connections = 7"}, {"SELECT * FROM mysql.user"}, {"CREATE DATABASE other"}, {"SHUTDOWN"}}
}

func newestImage(name v1alpha1.DatabaseType) string {
	releases := catalog.Of(name)
	return releases[len(releases)-1].Image
}

// versions returns the release before the newest, if there is one, and the newest.
func (e engine) versions() (older, newest string) {
	names := catalog.Engine{Name: e.name}.Versions()
	if len(names) > 1 {
		older = names[len(names)-2]
	}
	return older, names[len(names)-1]
}

// statements takes a query apart: the last statement, and what comes before.
func statements(query string) (before []string, last string) {
	all := strings.Split(query, "; ")
	return all[:len(all)-1], all[len(all)-1]
}
