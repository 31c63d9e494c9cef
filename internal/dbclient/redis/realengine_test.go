//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	engine "coolops.cn/database-manager/internal/engine/redis"

	"coolops.cn/database-manager/internal/engine/enginetest"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	adminPassword = `admin\ "quoted" pass`
	appPassword   = "app-pass$1"
	address       = "127.0.0.1:6379"
	patience      = 30 * time.Second
)

// server is a version of one of the two engines.
type server struct {
	engine.Engine
	image string
}

// forEach runs a test against every version of both engines; against the newest
// of each, where tests are to be short.
func forEach(t *testing.T, test func(*testing.T, server)) { forSome(t, testing.Short(), test) }

// forEveryOne runs a test against every version of both engines.
func forEveryOne(t *testing.T, test func(*testing.T, server)) { forSome(t, false, test) }

// forOneOrEach runs a test that takes long against every version of both engines;
// against the newest Valkey alone, where tests are to be short.
func forOneOrEach(t *testing.T, test func(*testing.T, server)) {
	if testing.Short() {
		test(t, server{engine.NewValkey(), "valkey/valkey:9.1"})
		return
	}
	forEach(t, test)
}

func forSome(t *testing.T, isShort bool, test func(*testing.T, server)) {
	for _, family := range []engine.Engine{engine.New(), engine.NewValkey()} {
		versions := family.Versions()
		if isShort {
			versions = versions[len(versions)-1:]
		}
		for _, version := range versions {
			image, _ := family.Image(version)
			t.Run(image, func(t *testing.T) {
				t.Parallel()
				test(t, server{family, image})
			})
		}
	}
}

// member is what runs the server; data may be the folder of an earlier one.
func (s server) member(data string, state plan.TopologyState) enginetest.Member {
	member := enginetest.Member{
		Image: s.image, Files: s.Files(nil), LiveFiles: s.LiveFiles(plan.LiveDefaults(s.Parameters())), Command: s.Command(), Data: data,
		AuthPassword: appPassword, AdminPassword: adminPassword,
	}
	if state != "" {
		member.Env = map[string]string{plan.TopologyStateVariable: string(state)}
	}
	return member
}

// start starts a new member, and waits until its probe succeeds.
func (s server) start(t *testing.T) *enginetest.Running {
	t.Helper()
	running := enginetest.Start(t, s.member("", plan.TopologyNew))
	running.WaitFor(s.Probe()...)
	return running
}

// startPrimary starts a new member and promotes it.
func (s server) startPrimary(t *testing.T) *enginetest.Running {
	t.Helper()
	running := s.start(t)
	if err := dial(t, running, adminPassword).Promote(t.Context(), plan.Acknowledgement{}); err != nil {
		t.Fatalf("promote: %v\n%s", err, running.Output())
	}
	return running
}

// restart starts the server again, and waits until its probe succeeds.
func (s server) restart(running *enginetest.Running) {
	running.Restart()
	running.WaitFor(s.Probe()...)
}

// dial connects to a member as the operator does.
func dial(t *testing.T, running *enginetest.Running, password string) *Connection {
	t.Helper()
	return dialFor(t, running, dbclient.Target{Password: password})
}

// dialFor connects to a member as the operator does, which knows what the member
// should have.
func dialFor(t *testing.T, running *enginetest.Running, target dbclient.Target) *Connection {
	t.Helper()
	SilenceDriver()
	target.Address, target.Username = address, engine.AdminUsername
	options := optionsFor(target)
	options.Dialer = running.Dial
	connection := connectionTo(target, options)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// client connects as one of the accounts; with an empty name as nobody.
func client(t *testing.T, running *enginetest.Running, username, password string) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{
		Addr: address, Dialer: running.Dial, Username: username, Password: password, DisableIdentity: true, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func state(t *testing.T, running *enginetest.Running) plan.EngineState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state, err := dial(t, running, adminPassword).State(ctx)
	if err != nil {
		t.Fatalf("it doesn't answer: %v\n%s", err, running.Output())
	}
	return state
}

func TestANewMemberTakesNoWritesUntilItIsPromoted(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.start(t)
		before := state(t, running)
		if version := strings.TrimPrefix(s.image[strings.LastIndex(s.image, ":"):], ":"); before.Role != v1alpha1.MemberRoleReplica || !strings.HasPrefix(before.Version, version) {
			t.Errorf("it says %+v", before)
		}
		app := client(t, running, engine.Username, appPassword)
		if err := app.Set(t.Context(), "key", "value", 0).Err(); !goredis.HasErrorPrefix(err, "READONLY") {
			t.Errorf("a write gives %v, want READONLY", err)
		}
		for range 2 { // a second time changes nothing
			if err := dial(t, running, adminPassword).Promote(t.Context(), plan.Acknowledgement{}); err != nil {
				t.Fatal(err)
			}
		}
		if after := state(t, running); after.Role != v1alpha1.MemberRolePrimary || after.RunID != before.RunID {
			t.Errorf("promoted, it says %+v; before %+v", after, before)
		}
		if err := app.Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Errorf("a write gives %v", err)
		}
		if _, err := dial(t, running, "wrong").State(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("a wrong password gives %v", err)
		}
	})
}

func TestAMemberKeepsItsDataAndItsRole(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		before := state(t, running)
		if err := client(t, running, engine.Username, appPassword).Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for sentence, end := range map[string]func() enginetest.Exit{"a kill": running.Kill, "a stop": running.Stop} {
			end()
			s.restart(running)
			if after := state(t, running); after.RunID == before.RunID || after.Role != before.Role {
				t.Errorf("%s: before %+v, after %+v", sentence, before, after)
			}
			if got := client(t, running, engine.Username, appPassword).Get(t.Context(), "key").Val(); got != "value" {
				t.Errorf("%s: the key holds %q", sentence, got)
			}
		}
	})
}

func TestAStopIsClean(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		if exit := s.startPrimary(t).Stop(); exit.Code != 0 {
			t.Errorf("SIGTERM ended it with %d:\n%s", exit.Code, exit.Output)
		}
	})
}

// refusalCase is a volume, and what a member says that is started on it.
type refusalCase struct {
	state   plan.TopologyState
	prepare func(*testing.T, string)
	code    int
	says    string
}

func write(files map[string]string) func(*testing.T, string) {
	return func(t *testing.T, data string) {
		t.Helper()
		for name, content := range files {
			path := filepath.Join(data, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAMemberRefusesAVolumeThatIsntItsOwn(t *testing.T) {
	empty := func(*testing.T, string) {}
	for sentence, row := range map[string]refusalCase{
		"an empty one, where data should be":   {plan.TopologyInitialized, empty, 66, "The volume is empty"},
		"an empty one, where nobody knows":     {"", empty, 66, "The volume is empty"},
		"one with lost+found only, and data":   {plan.TopologyInitialized, write(map[string]string{"lost+found/x": ""}), 66, "The volume is empty"},
		"one with somebody's files":            {plan.TopologyNew, write(map[string]string{"notes.txt": "mine"}), 65, "The volume holds notes.txt"},
		"one with a folder that nothing names": {plan.TopologyNew, write(map[string]string{"db/x": ""}), 65, "of unknown origin"},
		"one with another engine's data":       {plan.TopologyNew, write(map[string]string{"db/x": "", "engine": "mysql 9.7\n"}), 65, "holds data of mysql, and this is redis"},
		"one with newer data":                  {plan.TopologyNew, write(map[string]string{"db/x": "", "engine": "redis 9.10\n"}), 65, "last opened by redis 9.10, and this is redis 8.0, which is older"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			row.prepare(t, data)
			before := listing(t, data)
			running := enginetest.Start(t, server{engine.New(), "redis:8.0"}.member(data, row.state))
			exit := running.Wait()
			if exit.Code != row.code || !strings.Contains(running.TerminationMessage(), row.says) || strings.Count(running.TerminationMessage(), "\n") > 1 {
				t.Errorf("it ended with %d and %q, want %d and one line with %q", exit.Code, running.TerminationMessage(), row.code, row.says)
			}
			if after := listing(t, data); after != before {
				t.Errorf("the volume held %s, and now %s", before, after)
			}
		})
	}
}

// listing names the files below a folder, but for the lock.
func listing(t *testing.T, folder string) string {
	t.Helper()
	var names []string
	err := filepath.Walk(folder, func(path string, _ os.FileInfo, err error) error {
		if name, _ := filepath.Rel(folder, path); name != ".lock" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestASecondServerWontStartOnTheSameVolume(t *testing.T) {
	s := server{engine.New(), "redis:8.0"}
	first := s.startPrimary(t)
	second := enginetest.Start(t, s.member(first.DataFolder(), plan.TopologyInitialized))
	if exit := second.Wait(); exit.Code != 75 || !strings.Contains(second.TerminationMessage(), "in use by another server") {
		t.Errorf("it ended with %d and %q", exit.Code, second.TerminationMessage())
	}
	state(t, first)
}

func TestDataOfAnOlderVersionAreOpenedAndThenNoMoreByThatVersion(t *testing.T) {
	for _, family := range []engine.Engine{engine.New(), engine.NewValkey()} {
		t.Run(string(family.Type()), func(t *testing.T) {
			t.Parallel()
			versions := family.Versions()
			oldImage, _ := family.Image(versions[0])
			newImage, _ := family.Image(versions[len(versions)-1])
			older, newer := server{family, oldImage}, server{family, newImage}
			running := older.startPrimary(t)
			if err := client(t, running, engine.Username, appPassword).Set(t.Context(), "key", "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
			running.Stop()
			upgraded := enginetest.Start(t, newer.member(running.DataFolder(), plan.TopologyInitialized))
			upgraded.WaitFor(newer.Probe()...)
			if got := client(t, upgraded, engine.Username, appPassword).Get(t.Context(), "key").Val(); got != "value" {
				t.Errorf("the key holds %q", got)
			}
			if got := state(t, upgraded); got.Role != v1alpha1.MemberRolePrimary {
				t.Errorf("it says %+v", got)
			}
			upgraded.Stop()
			back := enginetest.Start(t, older.member(running.DataFolder(), plan.TopologyInitialized))
			if exit := back.Wait(); exit.Code != 65 {
				t.Errorf("the older version ended with %d and %q", exit.Code, back.TerminationMessage())
			}
		})
	}
}

func TestTheAccountsMayDoWhatTheyAreForAndNoMore(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		nobody, app := client(t, running, "", ""), client(t, running, engine.Username, appPassword)
		for command, isAllowed := range map[string]bool{
			"PING": true, "GET k": false, "INFO": false, "SET k v": false, "ACL WHOAMI": false, "CONFIG GET *": false, "SUBSCRIBE c": false,
			"COMMAND COUNT": false, "SHUTDOWN NOSAVE": false, "EVAL return(1) 0": false, "CLIENT LIST": false, "DBSIZE": false,
		} {
			checkAllowed(t, nobody, "nobody", command, isAllowed)
		}
		for command, isAllowed := range map[string]bool{
			"PING": true, "SET k v": true, "GET k": true, "SCAN 0": true, "DEL k": true, "INFO": true, "ROLE": true, "FLUSHDB": true, "WAIT 0 1": true,
			"PUBLISH c m": true, "EVAL return(1) 0": true, "LPUSH l 1": true, "SORT l": true, "CLIENT ID": true, "ACL WHOAMI": true,
			"KEYS *": false, "FLUSHALL": false, "CONFIG GET *": false, "CONFIG SET maxmemory 1": false, "ACL LIST": false, "SHUTDOWN NOSAVE": false,
			"REPLICAOF NO ONE": false, "CLIENT LIST": false, "SAVE": false, "SWAPDB 0 1": false, "MODULE LIST": false,
		} {
			checkAllowed(t, app, "app", command, isAllowed)
		}
		if err := client(t, running, engine.Username, "wrong").Ping(t.Context()).Err(); !goredis.HasErrorPrefix(err, "WRONGPASS") {
			t.Errorf("a wrong password gives %v", err)
		}
	})
}

func checkAllowed(t *testing.T, client *goredis.Client, who, command string, isAllowed bool) {
	t.Helper()
	var words []any
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	err := client.Do(t.Context(), words...).Err()
	isRefused := goredis.HasErrorPrefix(err, "NOPERM")
	if isAllowed == isRefused {
		t.Errorf("%s and %s: allowed should be %t, got %v", who, command, isAllowed, err)
	}
}

// TestAnyPasswordInTheFilesCountsFromTheNextStart tries passwords of every byte
// that a file may hold, but for the zero and the line feed.
func TestAnyPasswordInTheFilesCountsFromTheNextStart(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		const seed = 5
		random := rand.New(rand.NewPCG(seed, seed))
		data := s.startPrimary(t)
		data.Stop()
		former := appPassword
		for range 5 {
			password := make([]byte, 1+random.IntN(60))
			for i := range password {
				if password[i] = byte(1 + random.IntN(255)); password[i] == '\n' {
					password[i] = '"'
				}
			}
			member := s.member(data.DataFolder(), plan.TopologyInitialized)
			member.AuthPassword = string(password)
			running := enginetest.Start(t, member)
			running.WaitFor(s.Probe()...)
			if err := client(t, running, engine.Username, string(password)).Ping(t.Context()).Err(); err != nil {
				t.Errorf("the password %q: %v", password, err)
			}
			if err := client(t, running, engine.Username, former).Ping(t.Context()).Err(); !goredis.HasErrorPrefix(err, "WRONGPASS") {
				t.Errorf("the former password: %v", err)
			}
			former = string(password)
			running.Stop()
		}
	})
}

func TestARewriteOfTheConfigurationDoesntOverrideTheSpec(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		admin := client(t, running, engine.AdminUsername, adminPassword)
		if err := errors.Join(admin.ConfigSet(t.Context(), "appendfsync", "no").Err(), admin.ConfigRewrite(t.Context()).Err()); err != nil {
			t.Fatal(err)
		}
		running.Stop()
		s.restart(running)
		if got := client(t, running, engine.AdminUsername, adminPassword).ConfigGet(t.Context(), "appendfsync").Val()["appendfsync"]; got != "everysec" {
			t.Errorf("appendfsync is %q, the spec says everysec", got)
		}
	})
}

func TestNoPasswordIsInAFileOrAnArgument(t *testing.T) {
	forEach(t, func(t *testing.T, s server) {
		running := s.startPrimary(t)
		seen, err := running.Exec(t.Context(), "", "/bin/sh", "-c", "cat /proc/[0-9]*/cmdline /proc/1/environ; grep -ra . /data /tmp")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(seen, "users.acl") {
			t.Fatalf("the accounts aren't among what was read: %s", seen)
		}
		for _, password := range []string{adminPassword, appPassword} {
			if strings.Contains(seen, password) || strings.Contains(running.Output(), password) {
				t.Errorf("a password stands in a file, an argument, a variable or the output")
			}
		}
	})
}
