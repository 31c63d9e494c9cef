//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"coolops.cn/database-manager/internal/dbclient"
	engine "coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	adminPassword = `admin\ "quoted" pass`
	appPassword   = "app-pass$1"
	patience      = 20 * time.Second
)

// member is a real Redis, started by the boot script as in a pod, but for the
// places of its folders and its port.
type member struct {
	folder  string
	port    int
	command *exec.Cmd
	output  *output
}

// output is what a member printed, which may be read while it prints more.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(printed []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(printed)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// newMember lays out the folders of a member.
func newMember(t *testing.T, durable bool) *member {
	t.Helper()
	server := os.Getenv("REDIS_SERVER")
	if server == "" {
		t.Fatal("REDIS_SERVER isn't set: it names the redis-server to test with; make test-engines sets it")
	}
	m := &member{folder: t.TempDir(), port: freePort(t)}
	for _, folder := range []string{"data", "boot", "secrets/auth", "secrets/admin", "bin"} {
		if err := os.MkdirAll(filepath.Join(m.folder, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, "secrets/auth/password", appPassword)
	m.write(t, "secrets/admin/password", adminPassword)
	for name, content := range (engine.Engine{}).Files(durable) {
		m.write(t, "boot/"+name, m.relocate(content))
	}
	if err := os.Symlink(server, filepath.Join(m.folder, "bin", "redis-server")); err != nil {
		t.Fatal(err)
	}
	return m
}

// relocate moves the absolute places of a pod into the member's folder.
func (m *member) relocate(content string) string {
	for _, place := range []string{plan.DataDir, plan.BootDir, plan.AuthDir, plan.AdminDir} {
		content = strings.ReplaceAll(content, place, m.folder+place)
	}
	// It is reached from this machine alone.
	return strings.NewReplacer("port 6379", "port "+strconv.Itoa(m.port), "bind * -::*", "bind 127.0.0.1").Replace(content)
}

func (m *member) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs the boot script; stop ends what it became.
func (m *member) start(t *testing.T) {
	t.Helper()
	m.output = &output{}
	m.command = exec.Command("/bin/sh", filepath.Join(m.folder, "boot", "boot.sh"))
	m.command.Env = append(os.Environ(), "PATH="+filepath.Join(m.folder, "bin")+":"+os.Getenv("PATH"))
	m.command.Stdout, m.command.Stderr = m.output, m.output
	if err := m.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.signal(syscall.SIGKILL) })
}

// signal sends a signal to the first process of the member, and waits for its end.
func (m *member) signal(signal syscall.Signal) {
	if m.command.ProcessState == nil {
		_ = m.command.Process.Signal(signal)
		_ = m.command.Wait()
	}
}

// client connects as one of the accounts; with an empty name as nobody.
func (m *member) client(t *testing.T, username, password string) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)), Username: username, Password: password, DisableIdentity: true, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (m *member) target() dbclient.Target {
	return dbclient.Target{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)), Username: engine.AdminUsername, Password: adminPassword}
}

// awaitState asks until the member answers.
func (m *member) awaitState(t *testing.T) plan.EngineState {
	t.Helper()
	SilenceDriver()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		connection := Dial(m.target())
		state, err := connection.State(ctx)
		_ = connection.Close()
		if err == nil {
			return state
		}
		if ctx.Err() != nil {
			t.Fatalf("it doesn't answer: %v\n%s", err, m.output)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP {
		t.Fatalf("listening on %s", listener.Addr())
	}
	return address.Port
}

func TestAMemberStartsAndAnswersItsOperator(t *testing.T) {
	for folder, durable := range map[string]bool{"durable": true, "ephemeral": false} {
		t.Run(folder, func(t *testing.T) {
			m := newMember(t, durable)
			m.start(t)
			state := m.awaitState(t)
			if state.Role != v1alpha1.MemberRolePrimary || state.Version == "" || len(state.RunID) != 40 {
				t.Errorf("it says %+v", state)
			}
			if got := m.client(t, engine.AdminUsername, adminPassword).ConfigGet(t.Context(), "appendonly").Val()["appendonly"]; (got == "yes") != durable {
				t.Errorf("appendonly is %q", got)
			}
			wrong := m.target()
			wrong.Password = "wrong"
			if _, err := Dial(wrong).State(t.Context()); !errors.Is(err, ErrRefused) {
				t.Errorf("a wrong password gives %v", err)
			}
		})
	}
}

func TestAMemberKeepsItsDataAndItsRoleOverAKill(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	before := m.awaitState(t)
	if err := m.client(t, engine.Username, appPassword).Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	m.signal(syscall.SIGKILL)
	m.start(t)
	if after := m.awaitState(t); after.RunID == before.RunID || after.Role != before.Role {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if got := m.client(t, engine.Username, appPassword).Get(t.Context(), "key").Val(); got != "value" {
		t.Errorf("the key holds %q", got)
	}
}

func TestASignalReachesTheServer(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	m.signal(syscall.SIGTERM)
	if code := m.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("SIGTERM ended it with %d:\n%s", code, m.output)
	}
}

func TestASecondServerWontStartOnTheSameData(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	second := *m
	second.start(t)
	if err := second.command.Wait(); err == nil || !strings.Contains(second.output.String(), "in use by another server") {
		t.Errorf("it ended with %v:\n%s", err, second.output)
	}
	m.awaitState(t)
}

func TestTheAccountsMayDoWhatTheyAreForAndNoMore(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	nobody, app := m.client(t, "", ""), m.client(t, engine.Username, appPassword)
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
	if err := m.client(t, engine.Username, "wrong").Ping(t.Context()).Err(); !goredis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("a wrong password gives %v", err)
	}
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

func TestAMemberTakesItsPasswordsFromTheFilesAtEveryStart(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	m.signal(syscall.SIGTERM)
	m.write(t, "secrets/auth/password", "another")
	m.start(t)
	m.awaitState(t)
	if err := m.client(t, engine.Username, "another").Ping(t.Context()).Err(); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if err := m.client(t, engine.Username, appPassword).Ping(t.Context()).Err(); !goredis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("the old password: %v", err)
	}
}

func TestARewriteOfTheConfigurationDoesntOverrideTheSpec(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	admin := m.client(t, engine.AdminUsername, adminPassword)
	if err := errors.Join(admin.ConfigSet(t.Context(), "appendfsync", "no").Err(), admin.ConfigRewrite(t.Context()).Err()); err != nil {
		t.Fatal(err)
	}
	m.signal(syscall.SIGTERM)
	m.start(t)
	m.awaitState(t)
	if got := m.client(t, engine.AdminUsername, adminPassword).ConfigGet(t.Context(), "appendfsync").Val()["appendfsync"]; got != "everysec" {
		t.Errorf("appendfsync is %q, the spec says everysec", got)
	}
}

func TestNoPasswordIsInAFileOrAnArgument(t *testing.T) {
	m := newMember(t, true)
	m.start(t)
	m.awaitState(t)
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", m.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := os.ReadFile(filepath.Join(m.folder, "data", "users.acl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{adminPassword, appPassword} {
		for where, text := range map[string]string{"arguments": string(arguments), "accounts": string(accounts), "output": m.output.String()} {
			if strings.Contains(text, password) {
				t.Errorf("a password stands in the %s", where)
			}
		}
	}
}
