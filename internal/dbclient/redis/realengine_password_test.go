//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
)

// dialWith connects to a member as the operator does, which knows what password
// the application should have.
func dialWith(t *testing.T, running *enginetest.Running, password string) *Connection {
	t.Helper()
	return dialFor(t, running, dbclient.Target{Password: adminPassword, AppUsername: engine.Username, AppPassword: password})
}

// checkPassword checks what a member says of the application's password.
func checkPassword(t *testing.T, operator *Connection, when string, want plan.PasswordState) {
	t.Helper()
	if state, err := operator.State(t.Context()); err != nil || state.Password != want {
		t.Errorf("%s: the password is %q (%v), want %q", when, state.Password, err, want)
	}
}

// mustSetPassword sets the application's password.
func mustSetPassword(t *testing.T, operator *Connection) {
	t.Helper()
	if err := operator.SetPassword(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkLogins checks with which password the application gets in.
func checkLogins(t *testing.T, running *enginetest.Running, works, fails string) {
	t.Helper()
	if err := client(t, running, engine.Username, works).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the password %q: %v", works, err)
	}
	if err := client(t, running, engine.Username, fails).Ping(t.Context()).Err(); !goredis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("the password %q: %v", fails, err)
	}
}

func TestANewPasswordHoldsAtOnceAndTheOldOneNoMore(t *testing.T) {
	forEveryOne(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		session := client(t, running, engine.Username, appPassword).Conn()
		t.Cleanup(func() { _ = session.Close() }) // the member may be gone
		if err := session.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		former := appPassword
		for _, password := range []string{"simple", "two words", `"quoted" 'twice' \ back`, "#>~&*+@%", "密码 pässwörd", "\x01\r\n\xff\x00x", "resetpass", strings.Repeat("x", engine.MaxPasswordLength), appPassword} {
			operator := dialWith(t, running, password)
			checkPassword(t, operator, "before", plan.PasswordDiffers)
			for range 2 {
				mustSetPassword(t, operator)
				checkPassword(t, operator, "after", plan.PasswordSet)
			}
			checkLogins(t, running, password, former)
			former = password
		}
		if err := session.Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Errorf("a session that there was: %v", err)
		}
		if err := client(t, running, engine.Username, appPassword).ConfigGet(t.Context(), "port").Err(); !goredis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("the application may do more than before: %v", err)
		}
	})
}

// The kubelet may bring the new password into the member's file later than the
// operator sets it.
func TestAStartWithAnOldFileIsSeenAndMended(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		operator := dialWith(t, running, "another")
		mustSetPassword(t, operator)
		running.Kill()
		s.restart(running)
		checkPassword(t, operator, "after the start", plan.PasswordDiffers)
		mustSetPassword(t, operator)
		checkPassword(t, operator, "set again", plan.PasswordSet)
		checkLogins(t, running, "another", appPassword)
		running.Stop()
		member := s.member(running.DataFolder(), plan.TopologyInitialized)
		member.AuthPassword = "another"
		newer := enginetest.Start(t, member)
		newer.WaitFor(s.Probe()...)
		checkPassword(t, dialWith(t, newer, "another"), "with the new file", plan.PasswordSet)
	})
}

func TestThePasswordOutlivesTheServersReadingOfItsAccounts(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		operator := dialWith(t, running, "another")
		mustSetPassword(t, operator)
		if err := operator.client.Do(t.Context(), "ACL", "LOAD").Err(); err != nil {
			t.Fatal(err)
		}
		checkPassword(t, operator, "after ACL LOAD", plan.PasswordSet)
		checkLogins(t, running, "another", appPassword)
	})
}

func TestAnAccountThatSomebodyChangedIsSeenAndMended(t *testing.T) {
	for sentence, rules := range map[string][]string{
		"a second password": {">other"}, "no password": {"resetpass"}, "any password": {"nopass"}, "another password": {"resetpass", ">other"}, "shut": {"off"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s := server{engine.New(), "redis:8.0"}
			running := s.startPrimary(t)
			operator := dialWith(t, running, appPassword)
			checkPassword(t, operator, "before", plan.PasswordSet)
			if err := operator.client.ACLSetUser(t.Context(), engine.Username, rules...).Err(); err != nil {
				t.Fatal(err)
			}
			checkPassword(t, operator, "changed", plan.PasswordDiffers)
			mustSetPassword(t, operator)
			checkPassword(t, operator, "mended", plan.PasswordSet)
			checkLogins(t, running, appPassword, "other")
		})
	}
}

func TestAnAccountThatIsGoneIsLeftToTheNextStart(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		operator := dialWith(t, running, appPassword)
		if err := operator.client.ACLDelUser(t.Context(), engine.Username).Err(); err != nil {
			t.Fatal(err)
		}
		checkPassword(t, operator, "without an account", plan.PasswordDiffers)
		var refusal *dbclient.Refusal
		if err := operator.SetPassword(t.Context()); !errors.As(err, &refusal) {
			t.Errorf("setting the password gives %v", err)
		}
		running.Kill()
		s.restart(running)
		checkPassword(t, operator, "after the next start", plan.PasswordSet)
	})
}

func TestNothingIsSaidOfAPasswordThatNobodyAskedFor(t *testing.T) {
	checkPassword(t, dial(t, (server{engine.New(), "redis:8.0"}).start(t), adminPassword), "without an account's name", "")
}
