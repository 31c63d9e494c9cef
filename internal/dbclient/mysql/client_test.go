// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

func TestAVersionIsItsNumber(t *testing.T) {
	for version, want := range map[string]string{
		"9.7.4": "9.7.4", "9.7.4-2": "9.7.4", "11.8.3-MariaDB-ubu2404-log": "11.8.3", "10.11.18-MariaDB-0+deb12u1": "10.11.18", "": "", "unknown": "",
	} {
		if got := versionNumber(version); got != want {
			t.Errorf("%q became %q, want %q", version, got, want)
		}
	}
}

func TestErrorsAreWordedForAStatus(t *testing.T) {
	for sentence, row := range map[string]struct {
		err  error
		want string
	}{
		"a wrong password":       {&driver.MySQLError{Number: 1045, Message: "Access denied for user 'operator'@'10.0.0.7'"}, ErrRefused.Error()},
		"a locked account":       {fmt.Errorf("ask: %w", &driver.MySQLError{Number: 3118}), ErrRefused.Error()},
		"a missing privilege":    {&driver.MySQLError{Number: 1227}, ErrRefused.Error()},
		"no room":                {&driver.MySQLError{Number: 1040}, "too many connections"},
		"a shutdown":             {&driver.MySQLError{Number: 1053}, "shutting down"},
		"a statement that fails": {&driver.MySQLError{Number: 1064, Message: "near 's3cret'"}, "it answers error 1064"},
		"a broken connection":    {driver.ErrInvalidConn, "the connection fails"},
		"silence":                {context.DeadlineExceeded, "no answer within 1s"},
		"nobody there":           {&net.OpError{Op: "dial", Err: errors.New("10.0.0.7: connection refused")}, "the connection fails"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := describe(row.err).Error()
			if !strings.Contains(got, row.want) || strings.Contains(got, "s3cret") || strings.Contains(got, "10.0.0.7") {
				t.Errorf("%v became %q, want %q", row.err, got, row.want)
			}
		})
	}
}

func TestAMemberThatIsntThereFailsWithoutNamingAddressOrPassword(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dial := range []func(dbclient.Target) *Connection{Dial, DialMariaDB} {
		connection := dial(dbclient.Target{Address: address, Username: "operator", Password: "s3cret"})
		_, err = connection.State(t.Context())
		promoteErr := connection.Promote(t.Context(), plan.Acknowledgement{})
		for _, err := range []error{err, promoteErr} {
			if err == nil || err.Error() != "the connection fails" {
				t.Errorf("got %v", err)
			}
		}
		if err := connection.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestAMemberThatSaysNothingTimesOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // it was only read
	connection := Dial(dbclient.Target{Address: listener.Addr().String(), Username: "operator", Password: "s3cret"})
	if _, err := connection.State(t.Context()); err == nil || err.Error() != "no answer within 1s" {
		t.Errorf("got %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A foreign server, or one that is broken, may send anything.
func TestAMemberThatTalksNonsenseIsAnError(t *testing.T) {
	for _, nonsense := range []string{"", "\x00", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x01\x00\x00\x00\x0a", strings.Repeat("\xff", 4096)} {
		connection := dial(dbclient.Target{Address: "127.0.0.1:1"}, mysql(), func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				_, _ = there.Write([]byte(nonsense)) // the other side hangs up when it likes
				_ = there.Close()
			}()
			return here, nil
		})
		if _, err := connection.State(t.Context()); err == nil || err.Error() != "the connection fails" && err.Error() != "its answer can't be read" {
			t.Errorf("%q gives %v", nonsense, err)
		}
		if err := connection.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
