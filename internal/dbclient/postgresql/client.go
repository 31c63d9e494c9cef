// SPDX-License-Identifier: Apache-2.0

// Package postgresql talks to one member of a PostgreSQL database.
package postgresql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// callLimit is how long connecting may take, and how long a statement may.
const callLimit = time.Second

// database is where the operator's statements run. Applications can't connect
// to it, and so make nothing in it that the operator might come upon.
const database = "postgres"

// applicationName is what the operator's sessions are called.
const applicationName = "database-manager"

// settings are everything that the driver would take from its environment
// otherwise. It gives its password by SCRAM alone, which doesn't tell it to
// whoever listens at the address of a member.
const settings = "host=localhost port=5432 user=operator password=none dbname=" + database +
	" sslmode=disable require_auth=scram-sha-256 target_session_attrs=any"

// errUnexpected says that an answer isn't one to what was asked.
var errUnexpected = errors.New("it doesn't answer what it was asked")

// ErrRefused says that the member doesn't accept the operator's credentials.
var ErrRefused = errors.New("it refuses the operator's password")

// The classes of errors that PostgreSQL's manual lists in its appendix A.
const (
	invalidAuthorization = "28000"
	invalidPassword      = "28P01"
	tooManyConnections   = "53300"
	cannotConnectNow     = "57P03"
	readOnly             = "25006"
	undefinedObject      = "42704"
	cantChangeParameter  = "55P02"
)

// Statements name the schema of all that they use, so that nothing that was
// made by somebody else can stand in for it.
const (
	// askState gives whether the member only follows, the version as in 180006
	// for 18.6, the microsecond in which the server was started, and whether its
	// start has said that it has greater limits than its files, since its source had.
	askState = `SELECT pg_catalog.pg_is_in_recovery(),
		pg_catalog.current_setting('server_version_num'),
		pg_catalog.int8(pg_catalog.extract('epoch', pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000000),
		pg_catalog.current_setting('database_manager.former_limits', true), `

	// askSettings and askAccount are followed by names. A password that has run out
	// is none.
	askSettings = `SELECT name, setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) ANY (ARRAY[%s]::pg_catalog.text[])`
	askAccount  = `SELECT rolpassword, rolcanlogin AND (rolvaliduntil IS NULL OR rolvaliduntil OPERATOR(pg_catalog.>) pg_catalog.now())
		FROM pg_catalog.pg_authid WHERE rolname OPERATOR(pg_catalog.=) %s`

	// askReload has the server read its configuration again.
	askReload = `SELECT pg_catalog.pg_reload_conf()`
)

// Connection is a connection to one member. It isn't for use by several
// goroutines at once.
type Connection struct {
	config *pgconn.Config
	// broken is why there is no configuration.
	broken error
	// question is what State asks, in three statements.
	question string
	account  account
	// member is nil while there is no connection.
	member *pgconn.PgConn
	// way is how the member came to its timeline, pace how it keeps up.
	way  way
	pace pace
}

var (
	_ dbclient.Connection = (*Connection)(nil)
	_ dbclient.Replicator = (*Connection)(nil)
)

// Dial prepares a connection to one member; the first call makes it.
func Dial(target dbclient.Target) *Connection {
	config, err := configure(target)
	names := make([]string, 0, len(target.ParameterNames()))
	for _, name := range target.ParameterNames() {
		names = append(names, quoteText(name))
	}
	return &Connection{
		config: config, broken: err,
		question: strings.Join([]string{
			askState + askReplication, fmt.Sprintf(askSettings, strings.Join(names, ", ")), fmt.Sprintf(askAccount, quoteText(target.AppUsername)),
		}, ";"),
		account: account{name: target.AppUsername, password: target.AppPassword},
	}
}

// configure says how to connect, which only the driver can begin to.
func configure(target dbclient.Target) (*pgconn.Config, error) {
	host, portText, err := net.SplitHostPort(target.Address)
	if err != nil {
		return nil, errors.New("its address is malformed")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, errors.New("its port is malformed")
	}
	config, err := pgconn.ParseConfig(settings)
	if err != nil {
		return nil, fmt.Errorf("the environment of the operator's own process confuses the driver: %w", err)
	}
	config.Host, config.Port, config.User, config.Password = host, uint16(port), target.Username, target.Password
	config.Fallbacks, config.TLSConfig = nil, nil
	config.RuntimeParams = map[string]string{
		"application_name": applicationName, "search_path": "pg_catalog",
		// A session that may ask for the timeline, and for all else besides.
		"replication": "database",
		// Nothing that the operator does waits for replicas: it must be able to ask,
		// and to mend, what doesn't acknowledge. And a statement that takes too long
		// is cancelled by the driver: one that waits for replicas would be taken for
		// acknowledged by that.
		"synchronous_commit": "local",
	}
	return config, nil
}

// State asks the member what it is, and what it has been told.
func (c *Connection) State(ctx context.Context) (plan.EngineState, error) {
	tables, err := c.ask(ctx, c.question)
	if err != nil {
		return plan.EngineState{}, err
	}
	if len(tables) != 3 || len(tables[0]) != 1 {
		return plan.EngineState{}, errUnexpected
	}
	row := tables[0][0]
	if len(row) != stateColumns+replicationColumns {
		return plan.EngineState{}, errUnexpected
	}
	state, err := parseState(row[:stateColumns])
	if err != nil {
		return plan.EngineState{}, err
	}
	if err := c.replicationState(ctx, row[stateColumns:], &state); err != nil {
		return plan.EngineState{}, err
	}
	state.Settings = parseSettings(tables[1])
	state.Password = c.account.state(tables[2])
	return state, nil
}

// Configure sets parameters in the running server, each by itself: one that is
// refused keeps no other back. State tells a moment later, when the sessions have
// heard of them.
func (c *Connection) Configure(ctx context.Context, settings plan.Settings) error {
	var refused error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		_, err := c.ask(ctx, fmt.Sprintf("ALTER SYSTEM SET %s = %s", quoteName(name), quoteText(settings[name])))
		reason, isRefused := refusal(err)
		switch {
		case isRefused && refused == nil:
			refused = &dbclient.Refusal{Reason: fmt.Sprintf("%s = %s: %s", name, settings[name], reason)}
		case err != nil && !isRefused:
			return err
		}
	}
	if _, err := c.ask(ctx, askReload); err != nil {
		return err
	}
	return refused
}

// refusal returns what the server has against a statement that isn't in the state
// of the server, but in the statement: a wrong name, or a wrong value.
func refusal(err error) (string, bool) {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return "", false
	}
	class := answer.Code[:min(2, len(answer.Code))]
	return answer.Message, class == "22" || class == "42" || answer.Code == cantChangeParameter
}

// Close ends the connection.
func (c *Connection) Close() error {
	if c.member == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	err := c.member.Close(ctx)
	c.member = nil
	return err
}

// ask runs statements, and returns what each gives, as rows of columns.
func (c *Connection) ask(ctx context.Context, statements string) ([][][]string, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	results, err := c.member.Exec(ctx, statements).ReadAll()
	if err != nil {
		return nil, describe(err)
	}
	var tables [][][]string
	for _, result := range results {
		var rows [][]string
		for _, values := range result.Rows {
			var row []string
			for _, value := range values {
				row = append(row, string(value))
			}
			rows = append(rows, row)
		}
		tables = append(tables, rows)
	}
	return tables, nil
}

// stateColumns are those of askState.
const stateColumns = 4

// connect makes the connection where there is none, or none any more.
func (c *Connection) connect(ctx context.Context) error {
	if c.broken != nil {
		return c.broken
	}
	if c.member != nil && !c.member.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	member, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return describe(err)
	}
	// It may be another server, or have other data.
	c.member, c.way, c.pace = member, way{}, pace{}
	return nil
}

// parseState reads the answer to askState.
func parseState(row []string) (plan.EngineState, error) {
	if len(row) != stateColumns || row[2] == "" {
		return plan.EngineState{}, fmt.Errorf("it says of itself %q, which has another form than it should", row)
	}
	version, err := strconv.ParseUint(row[1], 10, 32)
	if err != nil {
		return plan.EngineState{}, fmt.Errorf("it doesn't say what version it is, but %q", row[1])
	}
	state := plan.EngineState{Version: fmt.Sprintf("%d.%d", version/10000, version%10000), RunID: row[2], HasFormerLimits: row[3] == "on"}
	switch row[0] {
	case "f":
		state.Role = v1alpha1.MemberRolePrimary
	case "t":
		state.Role = v1alpha1.MemberRoleReplica
	default:
		return plan.EngineState{}, fmt.Errorf("it doesn't say what role it has, but %q", row[0])
	}
	return state, nil
}

// parseSettings reads the answer to askSettings.
func parseSettings(rows [][]string) string {
	settings := plan.Settings{}
	for _, row := range rows {
		settings[row[0]] = row[1]
	}
	return settings.String()
}

// answerError is what the server answered, in words for a status. The answer
// itself is behind it.
type answerError struct {
	error
	answer *pgconn.PgError
}

func (e answerError) Unwrap() []error { return []error{e.error, e.answer} }

// describe words an error for the status of a database: without addresses or
// ports, which change from one attempt to the next, and without anything that
// the server was sent.
func describe(err error) error {
	var answer *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &answer):
		return answerError{describeAnswer(answer.Code), answer}
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("no answer within %s", callLimit)
	default:
		return errors.New("the connection fails")
	}
}

func describeAnswer(code string) error {
	switch code {
	case invalidPassword, invalidAuthorization:
		return ErrRefused
	case cannotConnectNow:
		return errors.New("it takes no connections yet, or no more: it starts or stops")
	case readOnly:
		return errors.New("it takes no writes")
	case tooManyConnections:
		return errors.New("it has no connection left")
	default:
		return fmt.Errorf("it answers with error %s", code)
	}
}
