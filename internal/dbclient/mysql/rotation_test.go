//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// withPassword is a connection of an operator that wants the application to have
// another password than the member's file says.
func (r running) withPassword(t *testing.T, password string) *Connection {
	t.Helper()
	target := r.target()
	target.AppPassword = password
	return r.dial(t, target)
}

func checkPassword(t *testing.T, connection *Connection, want plan.PasswordState) {
	t.Helper()
	state, err := connection.State(t.Context())
	if err != nil || state.Password != want {
		t.Errorf("the password is %q (%v), want %q", state.Password, err, want)
	}
}

// setPassword sets the application's password, and looks that it is the only one.
func (r running) setPassword(t *testing.T, password, former string) {
	t.Helper()
	connection := r.withPassword(t, password)
	checkPassword(t, connection, plan.PasswordDiffers)
	// Done again, it is the same.
	for range 2 {
		if err := connection.SetPassword(t.Context()); err != nil {
			t.Fatalf("set the password %q: %v", password, err)
		}
	}
	checkPassword(t, connection, plan.PasswordSet)
	r.checkLogin(t, password, former)
}

func (r running) checkLogin(t *testing.T, password, former string) {
	t.Helper()
	app := r.product.engine.Username()
	for range 2 {
		if got := answer(t, r.client(t, app, password), "SELECT CURRENT_USER()"); got != app+"@%" {
			t.Errorf("with %q it is %s", password, got)
		}
	}
	if err := r.client(t, app, former).PingContext(t.Context()); !isError(err, 1045) {
		t.Errorf("the former password %q gives %v", former, err)
	}
}

func TestTheApplicationGetsAnotherPasswordWhileTheServerRuns(t *testing.T) {
	forEachVersionInFull(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(filepath.Join(t.TempDir(), "data")))
		member.promote(t)
		checkPassword(t, member.operator(t, adminPassword), plan.PasswordSet)
		operator := member.client(t, p.engine.AdminUsername(), adminPassword)
		open := member.app(t)
		execute(t, open, "CREATE TEMPORARY TABLE app.open (i INT)")

		former := appPassword
		for _, pair := range oddPasswords(t) {
			for _, password := range pair {
				member.setPassword(t, password, former)
				former = password
			}
		}
		// One that came in before stays.
		execute(t, open, "INSERT INTO app.open VALUES (1)")
		execute(t, member.client(t, p.engine.Username(), former), "CREATE TABLE app.t (i INT)", "DROP TABLE app.t")

		t.Run("a second password isn't the only one", func(t *testing.T) {
			execute(t, operator, p.secondPassword)
			checkPassword(t, member.withPassword(t, former), plan.PasswordDiffers)
			checkPassword(t, member.withPassword(t, "second"), plan.PasswordDiffers)
			member.setPassword(t, "first", "second")
		})
		t.Run("a locked account is opened", func(t *testing.T) {
			execute(t, operator, "ALTER USER app@'%' ACCOUNT LOCK")
			member.setPassword(t, "first", former)
		})
		t.Run("an expired one is renewed", func(t *testing.T) {
			execute(t, operator, "ALTER USER app@'%' PASSWORD EXPIRE")
			member.setPassword(t, "first", former)
		})
		t.Run("a start sets what is in the file", func(t *testing.T) {
			member.Kill()
			member.again()
			checkPassword(t, member.operator(t, adminPassword), plan.PasswordSet)
			checkPassword(t, member.withPassword(t, "first"), plan.PasswordDiffers)
			member.checkLogin(t, appPassword, "first")
			member.setPassword(t, "first", appPassword)
		})
		t.Run("an account that is gone isn't made", func(t *testing.T) {
			execute(t, member.client(t, p.engine.AdminUsername(), adminPassword), "DROP USER app@'%'")
			connection := member.withPassword(t, "first")
			checkPassword(t, connection, plan.PasswordDiffers)
			if err := connection.SetPassword(t.Context()); err == nil || err.Error() != "it has no such account" {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestAPasswordThatIsSetIsNowhereToBeRead(t *testing.T) {
	forEachVersionInFull(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		member := p.start(t, made)
		member.promote(t)
		operator := member.client(t, p.engine.AdminUsername(), adminPassword)
		position := answer(t, operator, "SELECT "+p.position)
		const password = "a-new-secret-of-the-application"
		member.setPassword(t, password, appPassword)
		if after := answer(t, operator, "SELECT "+p.position); after != position {
			t.Errorf("it is in the binary log: %s after %s", after, position)
		}
		places := map[string]string{"the output": member.Output()}
		for _, query := range p.told {
			places[query] = answer(t, operator, query)
		}
		err := filepath.WalkDir(made.Data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			places[path] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for place, text := range places {
			if strings.Contains(text, password) || strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte(password))) {
				t.Errorf("it stands in %s", place)
			}
		}
	})
}

// The limit is of clients over a connection without TLS.
func TestTheLongestPasswordOfMySQLIsTheLongestThatAClientCanSend(t *testing.T) {
	if plan.MaxPassword > maxPasswordLength {
		t.Errorf("a Secret's may have %d bytes", plan.MaxPassword)
	}
	p := mysqlProduct()
	made := p.member("")
	made.AuthPassword = strings.Repeat("x", maxPasswordLength)
	member := p.start(t, made)
	member.promote(t)
	checkPassword(t, member.operator(t, adminPassword), plan.PasswordSet)
	longest := strings.Repeat("y", maxPasswordLength)
	member.setPassword(t, longest, made.AuthPassword)
	tooLong := longest + "y"
	var refusal *dbclient.Refusal
	if err := member.withPassword(t, tooLong).SetPassword(t.Context()); !errors.As(err, &refusal) {
		t.Errorf("one byte more gives %v", err)
	}
	execute(t, member.client(t, p.engine.AdminUsername(), adminPassword), "ALTER USER app@'%' IDENTIFIED BY '"+tooLong+"'")
	if err := member.client(t, "app", tooLong).PingContext(t.Context()); err == nil {
		t.Error("a client gets in with one byte more: the limit is too low")
	}
}

// Each member is told a new password by itself. See Engine.CopiesAccounts.
func TestAMemberThatTakesNoWritesTakesAPasswordAndNothingElse(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		member.setPassword(t, "other", appPassword)
		if _, err := member.client(t, p.engine.Username(), "other").Exec("CREATE TABLE app.t (i INT)"); !isError(err, readOnlyError) {
			t.Errorf("a write gives %v", err)
		}
		if state := member.state(t); state.Role != v1alpha1.MemberRoleReplica {
			t.Errorf("it says %+v", state)
		}
		if p.dialect.superReadOnly == "" {
			return
		}
		if _, err := member.client(t, p.engine.AdminUsername(), adminPassword).Exec("CREATE TABLE app.t (i INT)"); !isError(err, readOnlyError) {
			t.Errorf("a write of the operator's gives %v", err)
		}
	})
}
