// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestAStateIsRead(t *testing.T) {
	for sentence, row := range map[string]struct {
		answer []string
		want   plan.EngineState
		fail   string
	}{
		"of a primary":                     {[]string{"f", "180006", "17", ""}, plan.EngineState{Role: v1alpha1.MemberRolePrimary, Version: "18.6", RunID: "17"}, ""},
		"of a replica":                     {[]string{"t", "170012", "18", "on"}, plan.EngineState{Role: v1alpha1.MemberRoleReplica, Version: "17.12", RunID: "18", HasFormerLimits: true}, ""},
		"and refused without a role":       {[]string{"", "180006", "17", ""}, plan.EngineState{}, "what role"},
		"and refused without a version":    {[]string{"f", "devel", "17", ""}, plan.EngineState{}, "what version"},
		"and refused without a start":      {[]string{"f", "180006", "", ""}, plan.EngineState{}, "another form"},
		"and refused with a column less":   {[]string{"f", "180006"}, plan.EngineState{}, "another form"},
		"and refused where there are none": {nil, plan.EngineState{}, "another form"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := parseState(row.answer)
			if got != row.want || (err == nil) != (row.fail == "") || err != nil && !strings.Contains(err.Error(), row.fail) {
				t.Errorf("got %+v and %v, want %+v and %q", got, err, row.want, row.fail)
			}
		})
	}
}

func TestErrorsAreWordedForAStatus(t *testing.T) {
	for sentence, row := range map[string]struct {
		err  error
		want string
	}{
		"a wrong password":         {&pgconn.PgError{Code: "28P01", Message: `password authentication failed for user "operator"`}, ErrRefused.Error()},
		"an account that may not":  {fmt.Errorf("dial: %w", &pgconn.PgError{Code: "28000"}), ErrRefused.Error()},
		"a server that starts":     {&pgconn.PgError{Code: "57P03"}, "it starts or stops"},
		"a server that is full":    {&pgconn.PgError{Code: "53300"}, "no connection left"},
		"anything else it answers": {&pgconn.PgError{Code: "XX000", Message: "at 10.0.0.7"}, "it answers with error XX000"},
		"a time-out":               {fmt.Errorf("connect: %w", context.DeadlineExceeded), "no answer within 1s"},
		"a time-out of the system": {&net.OpError{Op: "dial", Err: timeout{}}, "no answer within 1s"},
		"a broken connection":      {errors.New("dial tcp 10.0.0.7:5432: connect: connection refused"), "the connection fails"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := describe(row.err).Error()
			if !strings.Contains(got, row.want) || strings.Contains(got, "10.0.0.7") {
				t.Errorf("it became %q, want %q", got, row.want)
			}
		})
	}
}

func TestARefusalIsOfWhatTheServerWasGiven(t *testing.T) {
	for sentence, row := range map[string]struct {
		err       error
		want      string
		isRefused bool
	}{
		"a wrong value":           {describe(&pgconn.PgError{Code: "22023", Message: "1 is outside the valid range"}), "1 is outside the valid range", true},
		"an unknown name":         {describe(&pgconn.PgError{Code: "42704", Message: "unrecognized"}), "unrecognized", true},
		"a parameter of no file":  {describe(&pgconn.PgError{Code: "55P02", Message: "cannot be changed"}), "cannot be changed", true},
		"a full disk":             {describe(&pgconn.PgError{Code: "53100"}), "", false},
		"a server that stops":     {describe(&pgconn.PgError{Code: "57P03"}), "", false},
		"an answer without class": {describe(&pgconn.PgError{}), "", false},
		"a broken connection":     {describe(errors.New("reset")), "", false},
		"nothing":                 {nil, "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, isRefused := refusal(row.err); got != row.want || isRefused != row.isRefused {
				t.Errorf("got %q (%t)", got, isRefused)
			}
		})
	}
}

type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }
func (timeout) Timeout() bool { return true }

func TestAMemberThatIsntThereFailsWithoutNamingAddressOrPassword(t *testing.T) {
	listener := listen(t)
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	connection := Dial(dbclient.Target{Address: address, Username: "operator", Password: "s3cret"})
	if _, err := connection.State(t.Context()); err == nil || err.Error() != "the connection fails" {
		t.Errorf("got %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestAMalformedAddressIsReportedByTheFirstCall(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.7": "address is malformed", "10.0.0.7:x": "port is malformed", "10.0.0.7:70000": "port is malformed"} {
		if _, err := Dial(dbclient.Target{Address: address}).State(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", address, err, want)
		}
	}
}

func TestTheDriversEnvironmentChangesNothing(t *testing.T) {
	for name, value := range map[string]string{
		"PGHOST": "elsewhere", "PGPORT": "1", "PGUSER": "other", "PGPASSWORD": "other", "PGDATABASE": "other",
		"PGSSLMODE": "require", "PGOPTIONS": "-c search_path=public", "PGAPPNAME": "other", "PGTARGETSESSIONATTRS": "standby",
		"PGREQUIREAUTH": "none", "PGPASSFILE": "/nowhere",
	} {
		t.Setenv(name, value)
	}
	config, err := configure(dbclient.Target{Address: "[fd00::7]:5432", Username: "operator", Password: `a'b\ c`})
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "fd00::7" || config.Port != 5432 || config.User != "operator" || config.Password != `a'b\ c` || config.Database != "postgres" {
		t.Errorf("it would connect to %s port %d as %s to %s", config.Host, config.Port, config.User, config.Database)
	}
	if config.TLSConfig != nil || len(config.Fallbacks) != 0 || config.ValidateConnect != nil || config.RequireAuth != "scram-sha-256" ||
		len(config.RuntimeParams) != 4 || config.RuntimeParams["search_path"] != "pg_catalog" || config.RuntimeParams["synchronous_commit"] != "local" {
		t.Errorf("it would connect with %v, %q and %v", config.Fallbacks, config.RequireAuth, config.RuntimeParams)
	}
}

func TestAPasswordIsntToldToWhoeverAsksForIt(t *testing.T) {
	listener := listen(t)
	heard := make(chan string, 1)
	go func() {
		heard <- func() string {
			accepted, err := listener.Accept()
			if err != nil {
				return err.Error()
			}
			defer func() { _ = accepted.Close() }() // nothing is written behind it
			backend := pgproto3.NewBackend(accepted, accepted)
			if _, err := backend.ReceiveStartupMessage(); err != nil {
				return err.Error()
			}
			backend.Send(&pgproto3.AuthenticationCleartextPassword{})
			if err := backend.Flush(); err != nil {
				return err.Error()
			}
			message, err := backend.Receive()
			if err != nil {
				return ""
			}
			return fmt.Sprintf("%T", message)
		}()
	}()
	_, err := Dial(dbclient.Target{Address: listener.Addr().String(), Username: "operator", Password: "s3cret"}).State(t.Context())
	if err == nil || err.Error() != "the connection fails" {
		t.Errorf("got %v", err)
	}
	if got := <-heard; got != "" {
		t.Errorf("whoever asked heard %s", got)
	}
}

func TestASilentMemberIsGivenUp(t *testing.T) {
	listener := listen(t)
	if _, err := Dial(dbclient.Target{Address: listener.Addr().String(), Username: "operator"}).State(t.Context()); err == nil || err.Error() != "no answer within 1s" {
		t.Errorf("got %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // a test may have closed it
	return listener
}
