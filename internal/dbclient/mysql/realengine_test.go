//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// readOnlyError is what both engines answer to a write where they are read-only.
const readOnlyError = 1290

func TestANewMemberTakesNoWritesUntilItIsPromotedAndThenGoesOn(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		began := time.Now()
		member := p.start(t, p.member(""))
		fresh := member.state(t)
		t.Logf("from an empty directory to the first answer: %s", time.Since(began).Round(10*time.Millisecond))
		if fresh.Role != v1alpha1.MemberRoleReplica || !strings.HasPrefix(fresh.Version, p.engine.DefaultVersion()+".") || fresh.IsLoading {
			t.Errorf("it says %+v", fresh)
		}
		if _, err := member.app(t).Exec("CREATE TABLE app.t (i INT)"); !isError(err, readOnlyError) {
			t.Errorf("a write gives %v", err)
		}
		if got := answer(t, member.client(t, p.engine.AdminUsername(), adminPassword), "SELECT "+p.position); got != "" {
			t.Errorf("a new member has transactions of its own: %s", got)
		}
		member.Kill()
		member.again()
		if state := member.state(t); state.Role != v1alpha1.MemberRoleReplica || state.RunID == fresh.RunID {
			t.Errorf("after a kill it says %+v, and before %+v", state, fresh)
		}

		member.promote(t)
		member.promote(t)
		execute(t, member.app(t), "CREATE TABLE app.t (i INT)", "INSERT INTO app.t VALUES (42)")
		for way, end := range map[string]func() enginetest.Exit{"SIGKILL": member.Kill, "SIGTERM": member.Stop} {
			before := member.state(t)
			end()
			began = time.Now()
			member.again()
			after := member.state(t)
			t.Logf("from a restart after %s to the first answer: %s", way, time.Since(began).Round(10*time.Millisecond))
			if before.Role != v1alpha1.MemberRolePrimary || after.Role != v1alpha1.MemberRolePrimary || after.RunID == before.RunID {
				t.Errorf("before %s %+v, after it %+v", way, before, after)
			}
			if got := answer(t, member.app(t), "SELECT i FROM app.t"); got != "42" {
				t.Errorf("after %s the table holds %q", way, got)
			}
		}
		execute(t, member.app(t), "INSERT INTO app.t VALUES (43)")
	})
}

func TestAMemberWhoseRoleIsLostTakesNoWrites(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		member.promote(t)
		if p.roleFile != "" {
			if err := os.Remove(filepath.Join(member.DataFolder(), p.roleFile)); err != nil {
				t.Fatal(err)
			}
		} else {
			execute(t, member.client(t, p.engine.AdminUsername(), adminPassword), "DROP DATABASE database_manager")
		}
		member.Kill()
		member.again()
		if state := member.state(t); state.Role != v1alpha1.MemberRoleReplica {
			t.Errorf("it says %+v", state)
		}
	})
}

func TestNothingChangesInTheStateWhileNothingHappens(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		connection := member.operator(t, adminPassword)
		first := member.state(t)
		// Long enough for the clock's seconds to pass between two of its readings.
		began, calls := time.Now(), 0
		for time.Since(began) < 2500*time.Millisecond {
			if state, err := connection.State(t.Context()); err != nil || state != first {
				t.Fatalf("it says %+v (%v), and first %+v", state, err, first)
			}
			calls++
		}
		t.Logf("%s a call", (time.Since(began) / time.Duration(calls)).Round(10*time.Microsecond))

		began = time.Now()
		if exit := member.Stop(); exit.Code != 0 || time.Since(began) > 10*time.Second {
			t.Errorf("SIGTERM ended it with %d after %s:\n%s", exit.Code, time.Since(began), exit.Output)
		}
		t.Logf("from SIGTERM to the end: %s", time.Since(began).Round(10*time.Millisecond))
		if _, err := connection.State(t.Context()); err == nil {
			t.Error("it answers after its end")
		}
		member.again()
		if state, err := connection.State(t.Context()); err != nil || state.RunID == first.RunID {
			t.Errorf("on the same connection after a restart it says %+v (%v)", state, err)
		}
	})
}

func TestAMemberListensOnBothFamiliesAndNoOtherPort(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		member := p.start(t, p.member(""))
		for _, host := range []string{"127.0.0.1", "::1"} {
			client := member.clientOf(t, net.JoinHostPort(host, strconv.Itoa(int(p.engine.Port()))), p.engine.Username(), appPassword)
			if got := answer(t, client, "SELECT 1"); got != "1" {
				t.Errorf("on %s it answers %q", host, got)
			}
		}
		listening, err := member.Exec(t.Context(), "", "/bin/sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 | sed -n 's/^ *[0-9]*: [0-9A-F]*:\\([0-9A-F]*\\) .* 0A .*/\\1/p' | sort -u")
		if want := fmt.Sprintf("%04X\n", p.engine.Port()); err != nil || listening != want {
			t.Errorf("it listens on %q (%v), want %q", listening, err, want)
		}
	})
}

func TestAMemberThatIsMadeCanBeInterrupted(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		first := enginetest.Start(t, made)
		// The first large file of a data directory.
		await(t, "the data directory is being made", func() bool {
			_, err := os.Stat(filepath.Join(made.Data, "init", "ibdata1"))
			return err == nil
		})
		began := time.Now()
		if exit := first.Stop(); exit.Code != 143 || time.Since(began) > 5*time.Second {
			t.Errorf("SIGTERM ended it with %d after %s:\n%s", exit.Code, time.Since(began), exit.Output)
		}
		t.Logf("from SIGTERM to the end: %s", time.Since(began).Round(10*time.Millisecond))
		if _, err := os.Stat(filepath.Join(made.Data, "db")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it left a data directory: %v", err)
		}
		first.Restart()
		first.WaitFor(p.engine.Probe()...)
	})
}

func TestASecondServerWontStartOnTheSameData(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		member := p.start(t, made)
		second := enginetest.Start(t, made)
		if exit := second.Wait(); exit.Code != 75 || !strings.Contains(second.TerminationMessage(), "in use by another server") {
			t.Errorf("it ended with %d and %q:\n%s", exit.Code, second.TerminationMessage(), exit.Output)
		}
		member.state(t)
		member.Kill()
		second.Restart()
		second.WaitFor(p.engine.Probe()...)
	})
}

func TestAMemberStartsOnNothingThatIsntItsOwn(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		for sentence, row := range map[string]struct {
			files   map[string]string
			state   string
			code    int
			message string
		}{
			"a folder of somebody else's":                   {map[string]string{"photos/cat": ""}, "new", 65, "holds photos, which"},
			"a data directory of unknown origin":            {map[string]string{"db/ibdata1": ""}, "new", 65, "of unknown origin"},
			"the data of another engine":                    {map[string]string{"db/x": "", "engine": "redis 8.0\n"}, "new", 65, "holds data of redis"},
			"newer data":                                    {map[string]string{"db/x": "", "engine": p.name + " 999.1\n"}, "initialized", 65, p.name + " 999.1, and this is " + p.name + " " + p.engine.DefaultVersion()},
			"an empty volume where there was a database":    {nil, "initialized", 66, "is empty"},
			"an empty volume where nothing is known":        {nil, "", 66, "is empty"},
			"what is left of a directory that wasn't whole": {map[string]string{"init/x": ""}, "initialized", 66, "is empty"},
		} {
			t.Run(sentence, func(t *testing.T) {
				refused := p.member(t.TempDir())
				refused.Env[plan.TopologyStateVariable] = row.state
				if row.state == "" {
					refused.Env = without(refused.Env, plan.TopologyStateVariable)
				}
				for name, content := range row.files {
					writeFile(t, filepath.Join(refused.Data, name), content)
				}
				before := listing(t, refused.Data)
				member := enginetest.Start(t, refused)
				exit := member.Wait()
				message := member.TerminationMessage()
				if exit.Code != row.code || !strings.Contains(message, row.message) || strings.Contains(message, "\n") {
					t.Errorf("it ended with %d and %q, want %d and %q:\n%s", exit.Code, message, row.code, row.message, exit.Output)
				}
				if after := listing(t, refused.Data); after != before {
					t.Errorf("the volume held\n%s\nand holds\n%s", before, after)
				}
			})
		}
	})
}

// writeFile writes a file as a member's user, with the folders above it.
func writeFile(t *testing.T, name, content string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// listing is what a volume holds, but for the lock.
func listing(t *testing.T, folder string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == folder || entry.Name() == ".lock" {
			return err
		}
		content := ""
		if !entry.IsDir() {
			read, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(read)
		}
		names = append(names, path+" "+content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func TestTheConfigurationIsAcceptedByTheServer(t *testing.T) {
	products := []product{mysqlProduct(), mariaDBProduct(), mariaDBProduct()}
	products[2].image = "mariadb:10.11"
	for _, p := range products {
		t.Run(p.image, func(t *testing.T) {
			checked := p.member("")
			checked.Files["boot.sh"] = p.validate
			exit := enginetest.Start(t, checked).Wait()
			if exit.Code != 0 || strings.Contains(strings.ToLower(exit.Output), "deprecated") {
				t.Errorf("it ended with %d:\n%s", exit.Code, exit.Output)
			}
			checked.Files["boot.sh"] = strings.Replace(p.validate, "--defaults-file=/boot", "--defaults-file=/tmp", 1)
			checked.Files["boot.sh"] = "cat /boot/*.cnf >/tmp/" + p.name + ".cnf; echo no-such-option=1 >>/tmp/" + p.name + ".cnf; " + checked.Files["boot.sh"]
			if exit := enginetest.Start(t, checked).Wait(); exit.Code == 0 {
				t.Error("an option that doesn't exist is accepted, too, so that the check above means nothing")
			}
		})
	}
}

func TestAMemberTakesItsPasswordsFromTheFilesAtEveryStart(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member(filepath.Join(t.TempDir(), "data"))
		member := p.start(t, made)
		if _, err := member.operator(t, "wrong").State(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("a wrong password gives %v", err)
		}
		if _, err := member.operator(t, "").State(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("no password gives %v", err)
		}
		pairs := oddPasswords(t)
		if testing.Short() {
			pairs = pairs[:3]
		}
		for _, pair := range pairs {
			member.Stop()
			former := made
			made.AuthPassword, made.AdminPassword = pair[0], pair[1]
			member = p.start(t, made)
			member.state(t)
			for _, account := range []struct{ name, now, former string }{
				{p.engine.Username(), pair[0], former.AuthPassword},
				{p.engine.AdminUsername(), pair[1], former.AdminPassword},
				{"replicator", p.replicatorPassword(pair[1]), p.replicatorPassword(former.AdminPassword)},
			} {
				// The first one needs the password itself, the second one what the
				// server remembers of it.
				for range 2 {
					if got := answer(t, member.client(t, account.name, account.now), "SELECT CURRENT_USER()"); got != account.name+"@%" {
						t.Errorf("with %q it is %s", account.now, got)
					}
				}
				if err := member.client(t, account.name, account.former).PingContext(t.Context()); !isError(err, 1045) {
					t.Errorf("the former password of %s, %q, gives %v", account.name, account.former, err)
				}
			}
		}
	})
}

// oddPasswords are pairs for the application and the operator. Each byte that a
// password may hold is in the first pair. No password is longer than 200 bytes:
// over a connection without TLS MySQL's clients encrypt it as one block of RSA.
func oddPasswords(t *testing.T) [][2]string {
	t.Helper()
	var all []byte
	for char := 1; char < 256; char++ {
		if char != '\n' {
			all = append(all, byte(char))
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func() string {
		password := make([]byte, 1+random.IntN(200))
		for i := range password {
			password[i] = all[random.IntN(len(all))]
		}
		return string(password)
	}
	return [][2]string{
		{string(all[:127]), string(all[127:])},
		{`'`, `\`},
		{`\'; -- `, "\u5bc6\u7801\u00a0\r\t"},
		{pick(), pick()},
		{pick(), pick()},
		{pick(), pick()},
	}
}

func TestAnEmptyPasswordIsRefused(t *testing.T) {
	forEach(t, func(t *testing.T, p product) {
		made := p.member("")
		made.AuthPassword = ""
		member := enginetest.Start(t, made)
		if exit := member.Wait(); exit.Code != 1 || member.TerminationMessage() != "The password of the account app is empty." {
			t.Errorf("it ended with %d and %q:\n%s", exit.Code, member.TerminationMessage(), exit.Output)
		}
	})
}

// isError tells whether it is an error of that number that the server answered.
func isError(err error, number uint16) bool {
	var answer *driver.MySQLError
	return errors.As(err, &answer) && answer.Number == number
}
