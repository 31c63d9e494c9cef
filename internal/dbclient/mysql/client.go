// SPDX-License-Identifier: Apache-2.0

// Package mysql talks to one member of a MySQL or a MariaDB database: both
// speak the same protocol, and differ in where they keep their role.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// callLimit is how long one call may take, connecting included.
const callLimit = time.Second

// errNoVariable says that the server doesn't know a variable that it was asked
// for.
var errNoVariable = errors.New("it lacks a parameter that it should have")

// ErrRefused says that the member doesn't accept the operator's credentials.
var ErrRefused = errors.New("it refuses the operator's password")

// dialect is what differs between the two engines.
type dialect struct {
	// state are three expressions: whether the member is read-only, its version,
	// and what changes with each start.
	state string
	// noTimeLimit is a setting by which no query of a session is ended.
	noTimeLimit string
	// takesSeveral tells whether a query is of several statements: the server allows
	// for that only where it is told beforehand.
	takesSeveral bool
	// superReadOnly is a setting by which a member that takes no writes takes none
	// from the operator either; empty if there is none.
	superReadOnly string
	// replicates is how the engine replicates.
	replicates replicates
	// settles tells whether a replica is current only once it has been receiving for
	// a while.
	settles bool
	// account is an expression with one placeholder, for an account's name: all
	// that is to be known of the account's password, or NULL.
	account string
	// hasPassword tells whether an account, as that gives it, has a password and
	// no other.
	hasPassword func(account, password string) bool
	// verifier is what the server keeps of a password.
	verifier func(password string) string
	// setVerifier is a statement with placeholders for an account's name and its
	// verifier. What else it sets is as the boot script sets it.
	setVerifier string
	// dropOther, if there is one, takes every other password from an account.
	dropOther string
	// maxPasswordLength is how many bytes a password may have; 0 means any number.
	maxPasswordLength int
}

// runIDColumn is the second in which the server started, a slash, and the file that the
// boot script named for this start: a server can start twice within a second. Both
// numbers are taken from the time at which the query began, so that it doesn't waver.
const runIDColumn = `CONCAT(CAST(UNIX_TIMESTAMP() - (SELECT VARIABLE_VALUE FROM %s WHERE VARIABLE_NAME = 'Uptime') AS SIGNED), '/', @@GLOBAL.pid_file)`

func mysql() dialect {
	return dialect{
		state: `@@GLOBAL.read_only OR @@GLOBAL.super_read_only, @@GLOBAL.version, ` +
			fmt.Sprintf(runIDColumn, "performance_schema.global_status"),
		noTimeLimit: "max_execution_time",
		replicates:  mysqlReplicates{}, takesSeveral: true, superReadOnly: "super_read_only",

		account: mysqlAccount, hasPassword: mysqlHasPassword, verifier: mysqlVerifier, maxPasswordLength: maxPasswordLength,
		setVerifier: `ALTER USER ?@'%' IDENTIFIED WITH caching_sha2_password AS ? REQUIRE NONE PASSWORD EXPIRE NEVER ACCOUNT UNLOCK`,
		dropOther:   `ALTER USER ?@'%' DISCARD OLD PASSWORD`,
	}
}

func mariaDB() dialect {
	return dialect{
		// Newer versions call the states by names, older ones by numbers.
		state: `@@GLOBAL.read_only NOT IN ('OFF', '0'), @@GLOBAL.version, ` +
			fmt.Sprintf(runIDColumn, "information_schema.GLOBAL_STATUS"),
		noTimeLimit: "max_statement_time",
		replicates:  mariaDBReplicates{}, settles: true,

		account: mariaDBAccount, hasPassword: mariaDBHasPassword, verifier: mariaDBVerifier,
		setVerifier: `ALTER USER ?@'%' IDENTIFIED VIA mysql_native_password USING ? REQUIRE NONE PASSWORD EXPIRE NEVER ACCOUNT UNLOCK`,
	}
}

// Connection is a connection to one member.
type Connection struct {
	db      *sql.DB
	target  dbclient.Target
	dialect dialect
	// state asks for one row with the state, and the values of the parameters.
	state      string
	parameters []string

	// mu guards what follows. What was found of the application's account goes with
	// what the account was then.
	mu       sync.Mutex
	account  string
	password plan.PasswordState
	// stands tells whether commits waited the last time, though replicas were there
	// that acknowledge, and how many had been acknowledged by then.
	stands       bool
	acknowledged float64

	settling settling
}

var _ dbclient.Connection = (*Connection)(nil)

// Dial prepares a connection to a member of a MySQL database; the first call
// makes it.
func Dial(target dbclient.Target) *Connection { return dial(target, mysql(), nil) }

// DialMariaDB is Dial for a member of a MariaDB database.
func DialMariaDB(target dbclient.Target) *Connection { return dial(target, mariaDB(), nil) }

// dialer reaches an address; nil means as usual.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func dial(target dbclient.Target, dialect dialect, reach dialer) *Connection {
	db := sql.OpenDB(connector{target, dialect, reach})
	db.SetMaxOpenConns(1)
	c := &Connection{db: db, target: target, dialect: dialect}
	c.askFor(target.ParameterNames())
	return c
}

// askFor says what parameters are asked for from now on.
func (c *Connection) askFor(parameters []string) {
	c.parameters, c.state = parameters, stateQuery(c.dialect, parameters)
}

// stateQuery asks for what the dialect says, for an account, and then for the
// values of parameters. They are asked for as text, since the driver would show a number
// with a fraction in its own form.
func stateQuery(dialect dialect, parameters []string) string {
	columns := []string{dialect.state, dialect.account}
	for _, name := range parameters {
		columns = append(columns, "CONCAT(@@GLOBAL."+quoteName(name)+")")
	}
	return dialect.replicates.query("SELECT " + strings.Join(columns, ", "))
}

// connector makes connections to one member.
type connector struct {
	dbclient.Target
	dialect dialect
	reach   dialer
}

func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	config := driver.NewConfig()
	config.Net, config.Addr, config.DialFunc = "tcp", c.Address, c.reach
	config.User, config.Passwd = c.Username, c.Password
	// What the driver would log is returned as errors, too, which are reported
	// once.
	config.Logger = &driver.NopLogger{}
	// Nothing is prepared in the server, which may allow for no more of that.
	config.InterpolateParams = true
	config.MultiStatements = c.dialect.takesSeveral
	// Each session begins with the same settings, whatever the server's are.
	// Nothing that the operator does to a member is copied to the others, and
	// nothing waits for a lock after the operator has given up.
	config.Params = map[string]string{
		"autocommit":          "ON",
		"sql_log_bin":         "OFF",
		"sql_mode":            "'STRICT_ALL_TABLES'",
		"time_zone":           "'+00:00'",
		"lock_wait_timeout":   "1",
		"wait_timeout":        "28800",
		c.dialect.noTimeLimit: "0",
	}
	made, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return made.Connect(ctx)
}

// Driver is asked for by package database/sql, and not used.
func (connector) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// State asks the member what it is, in one query. One that lacks a parameter,
// since its image has another version than it should, is asked again without
// them: then nothing is known of its settings, and nothing is set.
func (c *Connection) State(ctx context.Context) (plan.EngineState, error) {
	state, err := c.ask(ctx, c.parameters)
	if errors.Is(err, errNoVariable) && len(c.parameters) > 0 {
		c.askFor(nil)
		state, err = c.ask(ctx, nil)
	}
	if c.dialect.settles {
		state.Replication.IsCurrent = c.settling.isCurrent(state, err, time.Now())
	}
	if attendant, isAttendant := c.dialect.replicates.(attendant); isAttendant && err == nil && waitsForReplicas(state.Replication.Required) {
		attendant.attend(ctx, c)
	}
	return state, err
}

func (c *Connection) ask(ctx context.Context, names []string) (plan.EngineState, error) {
	var isReadOnly bool
	var version, runID string
	var account sql.NullString
	values := make([]string, len(names))
	columns := []any{&isReadOnly, &version, &runID, &account}
	for i := range values {
		columns = append(columns, &values[i])
	}
	state := plan.EngineState{Role: v1alpha1.MemberRolePrimary}
	err := call(ctx, func(ctx context.Context) error {
		return c.readState(ctx, &state, columns)
	})
	if err != nil {
		return plan.EngineState{}, err
	}
	state.Version, state.RunID = versionNumber(version), runID
	if isReadOnly {
		state.Role = v1alpha1.MemberRoleReplica
	}
	settings := plan.Settings{}
	for i, name := range names {
		settings[name] = values[i]
	}
	state.Settings = settings.String()
	if c.target.AppUsername != "" {
		state.Password = c.passwordState(account.String)
	}
	return state, nil
}

// readState reads one row, and what the engine says of replication after it.
func (c *Connection) readState(ctx context.Context, state *plan.EngineState, columns []any) (err error) {
	rows, err := c.db.QueryContext(ctx, c.state, c.target.AppUsername)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	if err := rows.Scan(columns...); err != nil {
		return err
	}
	return c.dialect.replicates.read(rows, state)
}

// Promote makes the member the primary.
func (c *Connection) Promote(ctx context.Context, required plan.Acknowledgement) error {
	return c.dialect.replicates.promote(ctx, c, required)
}

// call bounds a call, and words its error. The driver panics where a server's
// greeting is shorter than it should be.
func call(ctx context.Context, do func(context.Context) error) (err error) {
	return callWithin(ctx, callLimit, do)
}

// callWithin is call with another limit.
func callWithin(ctx context.Context, limit time.Duration, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
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

// Configure sets parameters in the running server, one after the other. Sessions
// that are open keep some of their own values.
func (c *Connection) Configure(ctx context.Context, settings plan.Settings) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		err := call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, "SET GLOBAL "+quoteName(name)+" = ?", literal(settings[name]))
			return asRefusal(name, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// quoteName writes a name as SQL.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal is a value as a parameter takes it: a number isn't quoted.
func literal(value string) any {
	if number, err := strconv.ParseInt(value, 10, 64); err == nil {
		return number
	}
	if number, err := strconv.ParseFloat(value, 64); err == nil {
		return number
	}
	return value
}

// asRefusal makes an error a refusal where it is one of the parameter's value. It
// is told in the server's words, which are about the parameter alone.
func asRefusal(name string, err error) error {
	var answer *driver.MySQLError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Number {
	case 1115, 1193, 1210, 1231, 1232, 1235, 1238, 1273, 1292, 1298:
		// An unknown character set, variable, collation or time zone; a wrong
		// argument, value or type; not supported; only read.
		return &dbclient.Refusal{Reason: name + ": " + answer.Message}
	default:
		return err
	}
}

// SetPassword gives the application's account the password of the target. The
// server gets its verifier, so that nobody on the way reads the password.
func (c *Connection) SetPassword(ctx context.Context) error {
	username, password, limit := c.target.AppUsername, c.target.AppPassword, c.dialect.maxPasswordLength
	switch {
	case password == "":
		return &dbclient.Refusal{Reason: "the password is empty"}
	case strings.ContainsRune(password, 0):
		return &dbclient.Refusal{Reason: "the password holds a NUL byte"}
	case limit > 0 && len(password) > limit:
		return &dbclient.Refusal{Reason: fmt.Sprintf("the password has %d bytes, and may have %d", len(password), limit)}
	}
	return c.writing(ctx, func() error {
		err := call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, c.dialect.setVerifier, username, c.dialect.verifier(password))
			return err
		})
		if err != nil || c.dialect.dropOther == "" {
			return err
		}
		return call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, c.dialect.dropOther, username)
			return err
		})
	})
}

// writing does what a replica doesn't take from the operator either: that is
// allowed meanwhile, and to nobody else. What is set afterwards is right for one
// that was made the primary in between, too.
func (c *Connection) writing(ctx context.Context, do func() error) error {
	if c.dialect.superReadOnly == "" {
		return do()
	}
	set := func(value string) error {
		return call(ctx, func(ctx context.Context) error {
			_, err := c.db.ExecContext(ctx, "SET GLOBAL "+c.dialect.superReadOnly+" = "+value)
			return err
		})
	}
	if err := set("OFF"); err != nil {
		return err
	}
	return cmp.Or(do(), set("@@GLOBAL.read_only"))
}

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
	var refusal *dbclient.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal
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
	case 1290:
		return errors.New("it takes no writes")
	case 1396:
		return errors.New("it has no such account")
	case 1193:
		return errNoVariable
	case 1053, 1927:
		return errors.New("it is shutting down")
	default:
		return fmt.Errorf("it answers error %d", number)
	}
}
