// SPDX-License-Identifier: Apache-2.0

// Package postgresql talks to one member of a PostgreSQL database.
package postgresql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
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

// settings are everything that the driver would take from its environment
// otherwise. It gives its password by SCRAM alone, which doesn't tell it to
// whoever listens at the address of a member.
const settings = "host=localhost port=5432 user=operator password=none dbname=" + database +
	" sslmode=disable require_auth=scram-sha-256 target_session_attrs=any"

// ErrRefused says that the member doesn't accept the operator's credentials.
var ErrRefused = errors.New("it refuses the operator's password")

// The classes of errors that PostgreSQL's manual lists in its appendix A.
const (
	invalidAuthorization = "28000"
	invalidPassword      = "28P01"
	tooManyConnections   = "53300"
	cannotConnectNow     = "57P03"
)

// Statements name the schema of all that they use, so that nothing that was
// made by somebody else can stand in for it.
const (
	// askState gives whether the member only follows, the version as in 180006
	// for 18.6, and the microsecond in which the server was started.
	askState = `SELECT pg_catalog.pg_is_in_recovery(),
		pg_catalog.current_setting('server_version_num'),
		pg_catalog.int8(pg_catalog.extract('epoch', pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000000)`

	// askPromotion does nothing to a member that is the primary already, for
	// which the function would fail. It doesn't wait for the end.
	askPromotion = `SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_promote(wait => false) ELSE true END`
)

// Connection is a connection to one member. It isn't for use by several
// goroutines at once.
type Connection struct {
	config *pgconn.Config
	// broken is why there is no configuration.
	broken error
	// member is nil while there is no connection.
	member *pgconn.PgConn
}

var _ dbclient.Connection = (*Connection)(nil)

// Dial prepares a connection to one member; the first call makes it.
func Dial(target dbclient.Target) *Connection {
	config, err := configure(target)
	return &Connection{config: config, broken: err}
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
	config.RuntimeParams = map[string]string{"application_name": "database-manager", "search_path": "pg_catalog"}
	return config, nil
}

// State asks the member what it is.
func (c *Connection) State(ctx context.Context) (plan.EngineState, error) {
	row, err := c.ask(ctx, askState)
	if err != nil {
		return plan.EngineState{}, err
	}
	return parseState(row)
}

// Promote lets the member end its recovery: it takes writes from then on, and
// its history has a new part. State tells when it is done.
func (c *Connection) Promote(ctx context.Context) error {
	row, err := c.ask(ctx, askPromotion)
	if err != nil {
		return err
	}
	if len(row) != 1 || row[0] != "t" {
		return errors.New("it can't be told to promote itself")
	}
	return nil
}

// Configure sets parameters in the running server.
func (c *Connection) Configure(context.Context, plan.Settings) error { return nil }

// SetPassword gives the application's account the password of the target.
func (c *Connection) SetPassword(context.Context) error { return nil }

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

// ask runs a statement that gives one row.
func (c *Connection) ask(ctx context.Context, statement string) ([]string, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	results, err := c.member.Exec(ctx, statement).ReadAll()
	if err != nil {
		return nil, describe(err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("it doesn't answer what it was asked")
	}
	var row []string
	for _, value := range results[0].Rows[0] {
		row = append(row, string(value))
	}
	return row, nil
}

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
	c.member = member
	return nil
}

// parseState reads the answer to askState.
func parseState(row []string) (plan.EngineState, error) {
	if len(row) != 3 || row[2] == "" {
		return plan.EngineState{}, fmt.Errorf("it says of itself %q, which has another form than it should", row)
	}
	version, err := strconv.ParseUint(row[1], 10, 32)
	if err != nil {
		return plan.EngineState{}, fmt.Errorf("it doesn't say what version it is, but %q", row[1])
	}
	state := plan.EngineState{Version: fmt.Sprintf("%d.%d", version/10000, version%10000), RunID: row[2]}
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

// describe words an error for the status of a database: without addresses or
// ports, which change from one attempt to the next, and without anything that
// the server was sent.
func describe(err error) error {
	var answer *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &answer):
		return describeAnswer(answer.Code)
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
	case tooManyConnections:
		return errors.New("it has no connection left")
	default:
		return fmt.Errorf("it answers with error %s", code)
	}
}
