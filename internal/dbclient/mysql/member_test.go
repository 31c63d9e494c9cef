//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"maps"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/engine/mariadb"
	mysqlengine "coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/plan"
)

// Passwords that don't occur anywhere by chance.
const (
	appPassword   = `app's "pass\word`
	adminPassword = `admin\'; -- é%s`
)

// patience is how long a member may take for anything that a test waits for.
const patience = 2 * time.Minute

// product is one engine, and what the tests need to know of it.
type product struct {
	name    string
	image   string
	engine  plan.Engine
	dialect dialect
	// validate checks the configuration.
	validate string
	// position is the variable that holds which transactions a member has.
	position string
	// roleFile is where the role stands on the volume; empty means in a table.
	roleFile string
	// binaryLog is what RESET calls the binary log.
	binaryLog string
	// forbidden are more statements that the application may not use.
	forbidden []string
	// copying are statements of a member that copies from another.
	copying []string
	// notForCopying are more that it may not use.
	notForCopying []string
	// told are queries for what the server remembers of statements.
	told []string
	// secondPassword gives the application's account one, "second", beside the
	// first.
	secondPassword string
	// replicatorPassword is that of the account replicator, by the operator's.
	replicatorPassword func(admin string) string
	// client is the engine's own client, and socket what it connects to.
	client, socket string
}

func mysqlProduct() product {
	return product{
		name: "mysql", image: "mysql:9.7", engine: mysqlengine.New(), dialect: mysql(),
		validate: "cp /live/live.cnf /data; exec mysqld --defaults-file=/boot/mysql.cnf --validate-config",
		position: "@@GLOBAL.gtid_executed", binaryLog: "BINARY LOGS AND GTIDS",
		forbidden: []string{
			"SET PERSIST max_connections = 1", "SET PERSIST_ONLY super_read_only = OFF", "STOP REPLICA", "CLONE LOCAL DATA DIRECTORY = '/data/mine'",
			"INSTALL PLUGIN clone SONAME 'mysql_clone.so'", "INSTALL COMPONENT 'file://component_validate_password'", "RESTART", "ALTER INSTANCE ROTATE INNODB MASTER KEY",
			"SELECT * FROM performance_schema.threads",
		},
		copying:       []string{"SHOW BINARY LOGS", "SHOW BINARY LOG STATUS", "LOCK INSTANCE FOR BACKUP", "UNLOCK INSTANCE"},
		notForCopying: []string{"SELECT * FROM mysql.user"},
		told: []string{
			"SELECT SQL_TEXT FROM performance_schema.events_statements_history", "SELECT SQL_TEXT FROM performance_schema.events_statements_current",
			"SELECT CONCAT(QUERY_SAMPLE_TEXT, DIGEST_TEXT) FROM performance_schema.events_statements_summary_by_digest",
			"SELECT PROCESSLIST_INFO FROM performance_schema.threads", "SELECT DATA FROM performance_schema.error_log", "SELECT VARIABLE_VALUE FROM performance_schema.user_variables_by_thread",
		},
		secondPassword: "ALTER USER app@'%' IDENTIFIED BY 'second' RETAIN CURRENT PASSWORD",
		roleFile:       "db/mysqld-auto.cnf", client: "mysql", socket: mysqlengine.Socket, replicatorPassword: mysqlReplicatorPassword,
	}
}

func mariaDBProduct() product {
	return product{
		name: "mariadb", image: "mariadb:11.8", engine: mariadb.New(), dialect: mariaDB(),
		validate: "cp /live/live.cnf /data; exec mariadbd --defaults-file=/boot/mariadb.cnf --help --verbose >/dev/null",
		position: "@@GLOBAL.gtid_current_pos", binaryLog: "MASTER",
		forbidden:      []string{"SELECT * FROM database_manager.member", "UPDATE database_manager.member SET role = 'replica'", "STOP SLAVE", "SELECT * FROM mysql.global_priv", "INSTALL SONAME 'ha_connect'"},
		copying:        []string{"SHOW BINARY LOGS", "SHOW MASTER STATUS"},
		notForCopying:  []string{"STOP SLAVE"},
		told:           []string{"SELECT INFO FROM information_schema.PROCESSLIST"},
		secondPassword: "ALTER USER app@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('first') OR mysql_native_password USING PASSWORD('second')",
		client:         "mariadb", socket: mariadb.Socket, replicatorPassword: replicatorPassword,
	}
}

// forEach runs a test with each engine.
func forEach(t *testing.T, test func(*testing.T, product)) {
	for _, product := range []product{mysqlProduct(), mariaDBProduct()} {
		t.Run(product.name, func(t *testing.T) { test(t, product) })
	}
}

// member returns one that is to be started on a folder, whose database is new.
func (p product) member(folder string) enginetest.Member {
	return enginetest.Member{
		Image: p.image, Files: p.engine.Files(nil), LiveFiles: p.engine.LiveFiles(plan.LiveDefaults(p.engine.Parameters())),
		Command: p.engine.Command(), Data: folder,
		AuthPassword: appPassword, AdminPassword: adminPassword,
		Env: map[string]string{plan.TopologyStateVariable: "new"},
	}
}

// running is a member that serves.
type running struct {
	*enginetest.Running
	product product
	member  enginetest.Member
}

func (p product) start(t *testing.T, member enginetest.Member) running {
	t.Helper()
	r := running{enginetest.Start(t, member), p, member}
	r.WaitFor(p.engine.Probe()...)
	return r
}

// again starts a member again that has ended, in place.
func (r running) again() {
	r.Restart()
	r.WaitFor(r.product.engine.Probe()...)
}

// operator is a connection as the operator makes it.
func (r running) operator(t *testing.T, password string) *Connection {
	t.Helper()
	target := r.target()
	target.Password = password
	return r.dial(t, target)
}

// target is the member, with the credentials that it was started with.
func (r running) target() dbclient.Target {
	var names []string
	for _, known := range r.product.engine.Parameters() {
		if known.IsLive {
			names = append(names, known.Name)
		}
	}
	return dbclient.Target{
		Address: r.address(), Username: r.product.engine.AdminUsername(), Password: r.member.AdminPassword,
		AppUsername: r.product.engine.Username(), AppPassword: r.member.AuthPassword,
		Parameters: strings.Join(names, ","),
	}
}

func (r running) dial(t *testing.T, target dbclient.Target) *Connection {
	t.Helper()
	connection := dial(target, r.product.dialect, r.Dial)
	t.Cleanup(func() { _ = connection.Close() }) // the server may be gone
	return connection
}

func (r running) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.product.engine.Port())))
}

// client is a connection as an account, with the driver's defaults.
func (r running) client(t *testing.T, username, password string) *sql.DB {
	t.Helper()
	return r.clientOf(t, r.address(), username, password)
}

func (r running) clientOf(t *testing.T, address, username, password string) *sql.DB {
	t.Helper()
	config := driver.NewConfig()
	config.Net, config.Addr, config.DialFunc, config.Logger = "tcp", address, r.Dial, &driver.NopLogger{}
	config.User, config.Passwd = username, password
	made, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(made)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the server may be gone
	return db
}

func (r running) app(t *testing.T) *sql.DB {
	t.Helper()
	return r.client(t, r.product.engine.Username(), r.member.AuthPassword)
}

// state is what the member says of itself.
func (r running) state(t *testing.T) plan.EngineState {
	t.Helper()
	state, err := r.operator(t, r.member.AdminPassword).State(t.Context())
	if err != nil {
		t.Fatalf("ask for the state: %v", err)
	}
	return state
}

func (r running) promote(t *testing.T) {
	t.Helper()
	if err := r.operator(t, r.member.AdminPassword).Promote(t.Context(), plan.Acknowledgement{}); err != nil {
		t.Fatalf("promote: %v", err)
	}
}

// execute runs statements, none of which may fail.
func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// answer is the first column of all rows, joined by spaces.
func answer(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }() // Err tells
	var values []string
	for rows.Next() {
		var value sql.NullString
		if err := rows.Scan(&value); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		values = append(values, value.String)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return strings.Join(values, " ")
}

// await waits until what is asked is so.
func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	awaitWithin(t, patience, what, isSo)
}

func awaitWithin(t *testing.T, limit time.Duration, what string, isSo func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !isSo() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", limit, what)
		case <-tick.C:
		}
	}
}

// without is an environment without one variable.
func without(env map[string]string, name string) map[string]string {
	reduced := maps.Clone(env)
	delete(reduced, name)
	return reduced
}
