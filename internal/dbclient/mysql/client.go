// SPDX-License-Identifier: Apache-2.0

// Package mysql talks to one member of a MySQL or a MariaDB database: both
// speak the same protocol, and differ in where they keep their role.
package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// callLimit is how long one call may take, connecting included.
const callLimit = time.Second

// ErrRefused says that the member doesn't accept the operator's credentials.
var ErrRefused = errors.New("it refuses the operator's password")

// dialect is what differs between the two engines.
type dialect struct {
	// state asks for one row: whether the member is read-only, its version, and
	// what changes with each start.
	state string
	// promote are the statements that make it the primary, in order.
	promote []string
}

// startedAt is the second in which the server started. Both numbers in it are
// taken from the time at which the query began, so that it doesn't waver.
const startedAt = `CAST(UNIX_TIMESTAMP() - (SELECT VARIABLE_VALUE FROM %s WHERE VARIABLE_NAME = 'Uptime') AS SIGNED)`

func mysql() dialect {
	return dialect{
		state: `SELECT @@GLOBAL.read_only OR @@GLOBAL.super_read_only, @@GLOBAL.version, CONCAT(@@GLOBAL.server_uuid, '/', ` +
			fmt.Sprintf(startedAt, "performance_schema.global_status") + `)`,
		// PERSIST writes it into the data directory, too.
		promote: []string{`SET PERSIST super_read_only = OFF, PERSIST read_only = OFF`},
	}
}

func mariaDB() dialect {
	return dialect{
		// Newer versions call the states by names, older ones by numbers.
		state: `SELECT @@GLOBAL.read_only NOT IN ('OFF', '0'), @@GLOBAL.version, ` +
			fmt.Sprintf(startedAt, "information_schema.GLOBAL_STATUS"),
		// First what is read at the next start, so that no primary becomes a
		// replica by a restart.
		promote: []string{
			`REPLACE INTO database_manager.member (id, role) VALUES (1, 'primary')`,
			`SET GLOBAL read_only = OFF`,
		},
	}
}

// Connection is a connection to one member.
type Connection struct {
	db      *sql.DB
	dialect dialect
}

var _ dbclient.Connection = (*Connection)(nil)

// Dial prepares a connection to a member of a MySQL database; the first call
// makes it.
func Dial(target dbclient.Target) *Connection { return dial(connector{Target: target}, mysql()) }

// DialMariaDB is Dial for a member of a MariaDB database.
func DialMariaDB(target dbclient.Target) *Connection {
	return dial(connector{Target: target}, mariaDB())
}

func dial(connector connector, dialect dialect) *Connection {
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return &Connection{db: db, dialect: dialect}
}

// connector makes connections to one member.
type connector struct {
	dbclient.Target
	// dial reaches the address; nil means as usual.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	config := driver.NewConfig()
	config.Net, config.Addr, config.DialFunc = "tcp", c.Address, c.dial
	config.User, config.Passwd = c.Username, c.Password
	// What the driver would log is returned as errors, too, which are reported
	// once.
	config.Logger = &driver.NopLogger{}
	// Each session begins with the same settings, whatever the server's are.
	// Nothing that the operator does to a member is copied to the others.
	config.Params = map[string]string{
		"autocommit":  "ON",
		"sql_log_bin": "OFF",
		"sql_mode":    "'STRICT_ALL_TABLES'",
		"time_zone":   "'+00:00'",
	}
	made, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return made.Connect(ctx)
}

// Driver is asked for by package database/sql, and not used.
func (connector) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// State asks the member what it is, in one query.
func (c *Connection) State(ctx context.Context) (plan.EngineState, error) {
	var isReadOnly bool
	var version, runID string
	err := call(ctx, func(ctx context.Context) error {
		return c.db.QueryRowContext(ctx, c.dialect.state).Scan(&isReadOnly, &version, &runID)
	})
	if err != nil {
		return plan.EngineState{}, err
	}
	role := v1alpha1.MemberRolePrimary
	if isReadOnly {
		role = v1alpha1.MemberRoleReplica
	}
	return plan.EngineState{Role: role, Version: versionNumber(version), RunID: runID}, nil
}

// Promote lets the member take writes, from now on and after each restart.
func (c *Connection) Promote(ctx context.Context) error {
	for _, statement := range c.dialect.promote {
		err := call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, statement)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// call bounds a call, and words its error. The driver panics where a server's
// greeting is shorter than it should be.
func call(ctx context.Context, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer func() {
		if recover() != nil {
			err = errors.New("its answer can't be read")
		}
	}()
	if err := do(ctx); err != nil {
		return describe(errors.Join(err, ctx.Err()))
	}
	return nil
}

// Configure sets parameters in the running server.
func (c *Connection) Configure(context.Context, plan.Settings) error { return nil }

// SetPassword gives the application's account the password of the target.
func (c *Connection) SetPassword(context.Context) error { return nil }

// Close ends the connection.
func (c *Connection) Close() error { return c.db.Close() }

// versionNumber is the number in a version, without the packager's name and
// their own number: 11.8.3-MariaDB-ubu2404-log is 11.8.3.
func versionNumber(version string) string {
	if end := strings.IndexFunc(version, func(char rune) bool { return char != '.' && (char < '0' || char > '9') }); end >= 0 {
		return version[:end]
	}
	return version
}

// describe words an error for the status of a database: without addresses or
// ports, which change from one attempt to the next, and without anything that
// the server was sent.
func describe(err error) error {
	var answer *driver.MySQLError
	switch {
	case errors.As(err, &answer):
		return describeAnswer(answer.Number)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", callLimit)
	default:
		return errors.New("the connection fails")
	}
}

// describeAnswer words an error that the server answers, by its number. A
// server's own words may hold parts of a statement.
func describeAnswer(number uint16) error {
	switch number {
	case 1044, 1045, 1142, 1227, 1698, 1820, 1862, 3118, 4151:
		// Access denied, to a database, a table, an action, or at all; the
		// password has expired; the account is locked.
		return ErrRefused
	case 1040:
		return errors.New("it has too many connections")
	case 1053, 1927:
		return errors.New("it is shutting down")
	default:
		return fmt.Errorf("it answers error %d", number)
	}
}
