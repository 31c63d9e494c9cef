//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
)

// dialWith makes the operator's connection, of one that knows what password the
// application should have.
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

// libpqLogin logs the application in by PostgreSQL's own client.
func libpqLogin(t *testing.T, running *enginetest.Running, password string) error {
	t.Helper()
	_, err := running.Exec(t.Context(), password, "/bin/sh", "-c", `PGPASSWORD=$(cat) exec psql -h 127.0.0.1 -U app -Atc "SELECT 1" app`)
	return err
}

func TestANewPasswordHoldsAtOnceAndTheOldOneNoMore(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		running := startPromoted(t, member)
		session := connectApp(t, running)
		former := appPassword
		passwords := append(oddPasswords(rand.New(rand.NewPCG(seed, 0))), oddPassword{strings.Repeat("x", engine.MaxPasswordLength), true, true})
		for _, odd := range passwords {
			operator := dialWith(t, running, odd.text)
			checkPassword(t, operator, fmt.Sprintf("before %q", odd.text), plan.PasswordDiffers)
			mustSetPassword(t, operator)
			checkPassword(t, operator, fmt.Sprintf("after %q", odd.text), plan.PasswordSet)
			if odd.isForDriver {
				if _, err := connect(t, running, engine.Username, odd.text, engine.Database); err != nil {
					t.Errorf("%q: %v", odd.text, err)
				}
			}
			if odd.isForLibpq {
				if err := libpqLogin(t, running, odd.text); err != nil {
					t.Errorf("%q: %v", odd.text, err)
				}
			}
			if _, err := connect(t, running, engine.Username, former, engine.Database); code(err) != invalidPassword {
				t.Errorf("the former password %q: %v", former, err)
			}
			former = odd.text
		}
		session.mustQuery("CREATE TABLE t (i int)")
		if got := session.mustQuery("SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = 'app'"); got != "f" {
			t.Error("the application may do more than before")
		}
	})
}

// TestAPasswordIsPreparedAsTheServerDoes compares with the verifiers that the
// server makes itself, of passwords with letters that are treated in odd ways.
func TestAPasswordIsPreparedAsTheServerDoes(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		superuser, err := connect(t, startPromoted(t, member), engine.AdminUsername, adminPassword, database)
		if err != nil {
			t.Fatal(err)
		}
		superuser.mustQuery("CREATE ROLE odd")
		for range 400 {
			password := oddLetters(random)
			superuser.mustQuery("ALTER ROLE odd PASSWORD " + quoteText(password))
			if verifier := superuser.mustQuery("SELECT rolpassword FROM pg_authid WHERE rolname = 'odd'"); !isVerifierOf(verifier, password) {
				t.Errorf("%q (%+q) is prepared in another way", password, password)
			}
		}
	})
}

// oddLetters is a password of letters of which many are spaces, go, become others,
// aren't allowed, or run from right to left.
func oddLetters(random *rand.Rand) string {
	kinds := []func() rune{
		func() rune { return 1 + random.Int32N(127) },
		func() rune { return 0x80 + random.Int32N(0x800) },
		func() rune { return 0x5d0 + random.Int32N(0x80) },
		func() rune { return 0x2000 + random.Int32N(0x200) },
		func() rune { return 0xf900 + random.Int32N(0x6ff) },
		func() rune { return 1 + random.Int32N(unicode.MaxRune) },
		func() rune {
			return []rune("\u00a0\u1680\u200b\u3000\u00ad\u034f\u1806\u2060\ufe00\ufeff\u0340\u0627ﬁ①½Å\u0301")[random.IntN(17)]
		},
	}
	// Most letters of a password are of one kind, so that some are allowed.
	usual := kinds[random.IntN(len(kinds))]
	var password strings.Builder
	for range 1 + random.IntN(6) {
		if random.IntN(4) == 0 {
			password.WriteRune(kinds[random.IntN(len(kinds))]())
		} else {
			password.WriteRune(usual())
		}
	}
	return password.String()
}

// The kubelet may bring the new password into the member's file later than the
// operator sets it.
func TestAPasswordOutlivesAKillWhateverTheFileSays(t *testing.T) {
	eachVersion(t, func(t *testing.T, member enginetest.Member) {
		running := startPromoted(t, member)
		mustSetPassword(t, dialWith(t, running, "another"))
		running.Kill()
		restart(running)
		checkPassword(t, dialWith(t, running, "another"), "with the old file", plan.PasswordSet)
		running.Kill()
		for _, password := range []string{"another", "yet another"} {
			member.AuthPassword = password
			newer := start(t, member)
			checkPassword(t, dialWith(t, newer, password), "with a file with "+password, plan.PasswordSet)
			newer.Kill()
		}
	})
}

func TestAnAccountThatSomebodyChangedIsSeenAndMended(t *testing.T) {
	running := startPromoted(t, newMember(t, "18"))
	superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
	if err != nil {
		t.Fatal(err)
	}
	operator := dialWith(t, running, appPassword)
	for _, statement := range []string{
		"ALTER ROLE app PASSWORD 'other'", "ALTER ROLE app PASSWORD NULL", "ALTER ROLE app NOLOGIN", "ALTER ROLE app VALID UNTIL '2020-01-01'",
		"SET password_encryption = md5; ALTER ROLE app PASSWORD '" + appPassword + "'",
		"ALTER ROLE app PASSWORD 'SCRAM-SHA-256$200000:AAAA$" + strings.Repeat("A", 43) + "=:" + strings.Repeat("A", 43) + "='",
	} {
		checkPassword(t, operator, "before "+statement, plan.PasswordSet)
		superuser.mustQuery(statement)
		checkPassword(t, operator, statement, plan.PasswordDiffers)
		mustSetPassword(t, operator)
		checkPassword(t, operator, "after "+statement, plan.PasswordSet)
		if _, err := connect(t, running, engine.Username, appPassword, engine.Database); err != nil {
			t.Errorf("after %s: %v", statement, err)
		}
	}
}

func TestAPasswordThatTheServerCantTakeIsRefused(t *testing.T) {
	running := startPromoted(t, newMember(t, "18"))
	var refusal *dbclient.Refusal
	for _, password := range []string{"", "\xff", "pass\x00word", "\xed\xa0\x80"} {
		operator := dialWith(t, running, password)
		if err := operator.SetPassword(t.Context()); !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "isn't UTF-8") {
			t.Errorf("%q gives %v", password, err)
		}
		checkPassword(t, operator, fmt.Sprintf("refused %q", password), plan.PasswordDiffers)
	}
	stranger := dialFor(t, running, dbclient.Target{Password: adminPassword, AppUsername: `no"body`, AppPassword: "x"})
	if err := stranger.SetPassword(t.Context()); !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "no account") {
		t.Errorf("an account that there isn't gives %v", err)
	}
	checkPassword(t, stranger, "an account that there isn't", plan.PasswordDiffers)
	checkPassword(t, dial(t, running, adminPassword), "asked for none", "")
	if _, err := connect(t, running, engine.Username, appPassword, engine.Database); err != nil {
		t.Errorf("the password that there was: %v", err)
	}
}

func TestAStandbySaysThatItTakesNoWrites(t *testing.T) {
	operator := dialWith(t, start(t, newMember(t, "18")), "another")
	var refusal *dbclient.Refusal
	if err := operator.SetPassword(t.Context()); err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("setting a password gives %v", err)
	}
	checkPassword(t, operator, "a standby", plan.PasswordDiffers)
}

func TestAPasswordThatIsSetIsToldToNobody(t *testing.T) {
	member := newMember(t, "18")
	running := startPromoted(t, member)
	superuser, err := connect(t, running, engine.AdminUsername, adminPassword, database)
	if err != nil {
		t.Fatal(err)
	}
	superuser.mustQuery("ALTER SYSTEM SET log_statement = 'all'")
	superuser.mustQuery("SELECT pg_reload_conf()")
	const secret = "changedPassword51"
	mustSetPassword(t, dialWith(t, running, secret))
	if strings.Contains(running.Kill().Output, secret) {
		t.Error("it was printed")
	}
	if place := find(t, running.DataFolder(), []byte(secret)); place != "" {
		t.Errorf("it stands in %s", place)
	}
}
