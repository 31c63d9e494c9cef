// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

func TestAMemberThatIsntThereFailsWithoutNamingAddressOrPassword(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	SilenceDriver()
	connection := Dial(dbclient.Target{Address: address, Username: "operator", Password: "s3cret"})
	_, err = connection.State(t.Context())
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestErrorsAreWordedForAStatus(t *testing.T) {
	for message, want := range map[string]string{
		"WRONGPASS invalid username-password pair or user is disabled.": ErrRefused.Error(),
		"NOPERM this user has no permissions":                           ErrRefused.Error(),
		"LOADING Redis is loading the dataset in memory":                "loading its data",
		"BUSY Redis is busy running a script":                           "it answers BUSY",
		"ERR There was an error trying to save the ACLs.":               "it answers ERR",
		"dial tcp 10.0.0.7:6379: connect: connection refused":           "the connection fails",
	} {
		if got := describe(serverError(message)).Error(); !strings.Contains(got, want) {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
	if got := describe(context.DeadlineExceeded); errors.Is(got, ErrRefused) || !strings.Contains(got.Error(), "no answer within 1s") {
		t.Errorf("a time-out became %q", got)
	}
}

func TestAPasswordIsComparedWithWhatTheServerKeeps(t *testing.T) {
	const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	list := func(words ...any) any { return words }
	for sentence, row := range map[string]struct {
		answer any
		want   plan.PasswordState
	}{
		"and is the same":              {map[any]any{"flags": list("on"), "passwords": list(digest)}, plan.PasswordSet},
		"and is, in the old protocol":  {list("flags", list("on", "sanitize-payload"), "passwords", list(digest)), plan.PasswordSet},
		"and is another":               {map[any]any{"flags": list("on"), "passwords": list("00")}, plan.PasswordDiffers},
		"and isn't the only one":       {map[any]any{"flags": list("on"), "passwords": list(digest, "00")}, plan.PasswordDiffers},
		"and there is none":            {map[any]any{"flags": list("on"), "passwords": list()}, plan.PasswordDiffers},
		"and any other would do":       {map[any]any{"flags": list("on", "nopass"), "passwords": list(digest)}, plan.PasswordDiffers},
		"and the account is shut":      {map[any]any{"flags": list("off"), "passwords": list(digest)}, plan.PasswordDiffers},
		"and there is no such account": {nil, plan.PasswordDiffers},
		"and the answer is nonsense":   {list("flags", "on", "passwords"), plan.PasswordDiffers},
	} {
		t.Run(sentence, func(t *testing.T) {
			account := accountOf(dbclient.Target{AppUsername: "app", AppPassword: "test"})
			if got := account.password(row.answer); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// serverError is an error as a server answers it.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError marks it for the driver.
func (serverError) RedisError() {}
