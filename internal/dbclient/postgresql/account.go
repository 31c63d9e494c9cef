// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// account is the application's, as it should be.
type account struct {
	name, password string
	// known is the verifier that was compared last, and is what came of it: to
	// compare one costs a millisecond, and it seldom changes.
	known string
	is    plan.PasswordState
}

// state tells from the answer to askAccount whether the account has the password.
func (a *account) state(rows [][]string) plan.PasswordState {
	if a.name == "" {
		return ""
	}
	if len(rows) != 1 || rows[0][1] != "t" {
		return plan.PasswordDiffers
	}
	if verifier := rows[0][0]; a.is == "" || a.known != verifier {
		a.known, a.is = verifier, plan.PasswordDiffers
		if isVerifierOf(verifier, a.password) {
			a.is = plan.PasswordSet
		}
	}
	return a.is
}

// SetPassword gives the application's account the password of the target, of
// which the server gets to know the verifier only.
func (c *Connection) SetPassword(ctx context.Context) error {
	if password := c.account.password; password == "" || !utf8.ValidString(password) || strings.ContainsRune(password, 0) {
		return &dbclient.Refusal{Reason: "the password is empty, or isn't UTF-8, or holds a zero byte, and PostgreSQL takes no such one"}
	}
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // it never fails
	verifier, err := verifierOf(c.account.password, salt, iterations)
	if err != nil {
		return err
	}
	_, err = c.ask(ctx, fmt.Sprintf("ALTER ROLE %s LOGIN PASSWORD %s VALID UNTIL 'infinity'", quoteName(c.account.name), quoteText(verifier)))
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == undefinedObject {
		return &dbclient.Refusal{Reason: "it has no account for the application any more"}
	}
	return err
}

// quoteName writes a name so that the server reads exactly it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText writes a text so that the server reads exactly it, whether it takes
// a backslash for what it is or not.
func quoteText(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if !strings.Contains(text, `\`) {
		return quoted
	}
	return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
}
