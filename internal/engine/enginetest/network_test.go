//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// silence is how long a test waits for what mustn't come.
const silence = time.Second

// redisMember is a member of Redis that anybody may write to, with its data on its
// volume, as a child of a script.
func redisMember() Member {
	return script("redis:8.0", `trap 'kill -TERM $server; wait $server; exit 0' TERM
redis-server --dir /data --save '' --appendonly yes --protected-mode no &
server=$!
wait $server
`)
}

// startRedis starts so many members, and waits until all serve.
func startRedis(t *testing.T, network *Network, members int) []*Running {
	t.Helper()
	var started []*Running
	for ordinal := range members {
		started = append(started, network.Start(ordinal, redisMember()))
	}
	for _, member := range started {
		member.WaitFor("redis-cli", "ping")
	}
	return started
}

// ask runs a command of Redis at one member, from another, and returns the answer.
func ask(t *testing.T, from, to *Running, command ...string) string {
	t.Helper()
	answer, err := from.Exec(t.Context(), "", append([]string{"redis-cli", "-h", to.Host()}, command...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

// reaches tells whether one member is answered by another within a while.
func reaches(t *testing.T, from, to *Running) bool {
	t.Helper()
	const command = `timeout "$1" redis-cli -h "$2" ping || echo "ended with $?"`
	answer, err := from.Exec(t.Context(), "", "/bin/sh", "-c", command, "sh", strconv.FormatFloat(silence.Seconds(), 'f', -1, 64), to.Host())
	if err != nil || answer != "PONG\n" && answer != "ended with 124\n" {
		t.Errorf("from %s, %s neither answers nor stays silent: %q (%v)", from.Name(), to.Name(), answer, err)
	}
	return answer == "PONG\n"
}

// hears tells whether a datagram from one member arrives at another, or doesn't
// within the limit. Unlike a connection, it shows one direction by itself.
func hears(t *testing.T, to, from *Running, limit time.Duration) bool {
	t.Helper()
	type result struct {
		listener *net.UDPConn
		err      error
	}
	listening := make(chan result)
	go inNamespace(to.namespace, func(err error) {
		var done result
		if done.err = err; err == nil {
			done.listener, done.err = net.ListenUDP("udp4", &net.UDPAddr{})
		}
		listening <- done
	})
	done := <-listening
	if done.err != nil {
		t.Fatal(done.err)
	}
	defer func() { _ = done.listener.Close() }() // it is only read
	_, port, err := net.SplitHostPort(done.listener.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := from.Dial(t.Context(), "udp4", net.JoinHostPort(to.Address(), port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }() // what was written is sent
	if _, err := io.WriteString(connection, "x"); err != nil {
		t.Fatal(err)
	}
	if err := done.listener.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err = done.listener.Read(make([]byte, 1))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	return err == nil
}

// session is a connection of the test to a member.
type session struct {
	net.Conn
	answers *bufio.Reader
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func connect(t *testing.T, dial dialer, address string) session {
	t.Helper()
	connection, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the member may be gone
	return session{connection, bufio.NewReader(connection)}
}

func (s session) send(t *testing.T, command string) {
	t.Helper()
	if _, err := io.WriteString(s, command+"\r\n"); err != nil {
		t.Errorf("a connection doesn't take %s: %v", command, err)
	}
}

// answersWithin waits for one line.
func (s session) answersWithin(t *testing.T, limit time.Duration) bool {
	t.Helper()
	if err := s.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	line, err := s.answers.ReadString('\n')
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection didn't stall, it ended: %v", err)
	}
	return err == nil && strings.TrimSpace(line) == "+PONG"
}

func TestMembersFindEachOtherByTheirNames(t *testing.T) {
	network := NewNetwork(t, "orders")
	members := startRedis(t, network, 3)
	for _, member := range members {
		if _, err := member.Exec(t.Context(), "", "redis-cli", "set", "name", member.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range members {
		for _, to := range members {
			for _, name := range []string{to.Host(), to.Host() + ".cluster.local", to.Name() + ".orders-members", to.Address()} {
				answer, err := from.Exec(t.Context(), "", "redis-cli", "-h", name, "get", "name")
				if err != nil || answer != to.Name()+"\n" {
					t.Errorf("from %s, %s is %q (%v), want %s", from.Name(), name, answer, err, to.Name())
				}
			}
		}
		if host := "orders-" + strings.TrimPrefix(from.Name(), "orders-") + ".orders-members.test.svc"; from.Host() != host {
			t.Errorf("the name of %s is %s, want %s", from.Name(), from.Host(), host)
		}
	}
	for _, address := range []string{members[1].Host(), members[1].Address()} {
		reached := connect(t, network.Dial, net.JoinHostPort(address, "6379"))
		reached.send(t, "GET name")
		length, lengthErr := reached.answers.ReadString('\n')
		name, err := reached.answers.ReadString('\n')
		if err != nil || strings.TrimSpace(name) != members[1].Name() {
			t.Errorf("%s answered the test %q %q (%v, %v)", address, length, name, lengthErr, err)
		}
	}
	// Another network has the same addresses, and other members.
	other := startRedis(t, NewNetwork(t, "orders"), 2)
	if got := ask(t, other[0], other[1], "get", "name"); other[1].Address() != members[1].Address() || got != "" {
		t.Errorf("a member of another network, at %s, holds %q", other[1].Address(), got)
	}
	for _, outside := range []string{"10.255.255.53", "1.1.1.1"} {
		if _, err := network.Dial(t.Context(), "tcp", net.JoinHostPort(outside, "53")); err == nil || !strings.Contains(err.Error(), "network is unreachable") {
			t.Errorf("what isn't in the network gives %v, want that it's unreachable", err)
		}
	}
}

func TestAnIsolatedMemberIsSilentToThoseItIsIsolatedFrom(t *testing.T) {
	t.Parallel()
	// A pair is named by the ordinals of the two.
	for sentence, row := range map[string]struct {
		isolate func(*Network, []*Running)
		silent  []string
		isCut   bool // the test from member 0
	}{
		"one from all":                  {func(_ *Network, m []*Running) { m[0].Isolate() }, []string{"01", "02"}, false},
		"one from one":                  {func(_ *Network, m []*Running) { m[0].Isolate(m[1]) }, []string{"01"}, false},
		"one from two, one by one":      {func(_ *Network, m []*Running) { m[1].Isolate(m[0]); m[1].Isolate(m[2]) }, []string{"01", "12"}, false},
		"one from the test":             {func(_ *Network, m []*Running) { m[0].IsolateFromTest() }, nil, true},
		"one from all and the test":     {func(_ *Network, m []*Running) { m[0].IsolateFromTest(); m[0].Isolate() }, []string{"01", "02"}, true},
		"one that rejoined":             {func(_ *Network, m []*Running) { m[0].Isolate(); m[0].IsolateFromTest(); m[0].Rejoin() }, nil, false},
		"two, of which one rejoined":    {func(_ *Network, m []*Running) { m[0].Isolate(m[1]); m[1].Isolate(m[0]); m[1].Rejoin() }, []string{"01"}, false},
		"one whose pod was made anew":   {func(_ *Network, m []*Running) { m[0].Isolate(); replace(m[0]) }, []string{"01", "02"}, false},
		"one from one that is made new": {func(_ *Network, m []*Running) { m[0].Isolate(m[1]); replace(m[1]) }, []string{"01"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			network := NewNetwork(t, "orders")
			members := startRedis(t, network, 3)
			row.isolate(network, members)
			for _, pair := range []string{"01", "02", "12"} {
				one, other := members[pair[0]-'0'], members[pair[1]-'0']
				want := !slices.Contains(row.silent, pair)
				limit := silence / 5
				if want {
					limit = patience
				}
				if there, back := hears(t, other, one, limit), hears(t, one, other, limit); there != want || back != want {
					t.Errorf("what %s says is heard by %s: %t, and back: %t, want %t", one.Name(), other.Name(), there, back, want)
				}
				if reaches(t, one, other) != want {
					t.Errorf("%s reaches %s: %t, want %t", one.Name(), other.Name(), !want, want)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), silence)
			defer cancel()
			connection, err := network.Dial(ctx, "tcp", net.JoinHostPort(members[0].Host(), "6379"))
			if err == nil {
				_ = connection.Close() // it was only opened
			}
			if isCut := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded); isCut != row.isCut || (err != nil) != row.isCut {
				t.Errorf("the test's connection to %s gives %v; want it cut: %t", members[0].Name(), err, row.isCut)
			}
			inside := connect(t, members[0].Dial, "127.0.0.1:6379")
			inside.send(t, "PING")
			if !inside.answersWithin(t, patience) {
				t.Errorf("%s doesn't answer within its own pod", members[0].Name())
			}
		})
	}
}

// replace makes a member's pod anew, and waits until it serves.
func replace(member *Running) {
	member.Replace(patience)
	member.WaitFor("redis-cli", "ping")
}

func TestConnectionsStallWhileAMemberIsIsolatedAndGoOnAfterwards(t *testing.T) {
	network := NewNetwork(t, "orders")
	members := startRedis(t, network, 2)
	primary, replica := members[0], members[1]
	if answer := ask(t, replica, replica, "replicaof", primary.Host(), "6379"); answer != "OK" {
		t.Fatal(answer)
	}
	replica.WaitFor("/bin/sh", "-c", "redis-cli info replication | grep -q master_link_status:up")
	attached := ask(t, primary, primary, "client", "list", "type", "replica")
	// What the answer is to a write that waits a second for the replica.
	acknowledged := func(value string) string {
		answer, err := primary.Exec(t.Context(), "set key "+value+"\nwait 1 1000\n", "redis-cli")
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := acknowledged("before"); answer != "OK\n1\n" {
		t.Fatalf("a write gives %q", answer)
	}

	kept := connect(t, network.Dial, primary.Address()+":6379")
	primary.Isolate(replica)
	if answer := acknowledged("value"); answer != "OK\n0\n" {
		t.Errorf("while they are cut off, a write gives %q", answer)
	}
	kept.send(t, "PING")
	if !kept.answersWithin(t, patience) {
		t.Error("the test's connection is cut, and wasn't to be")
	}
	primary.IsolateFromTest()
	kept.send(t, "PING")
	if kept.answersWithin(t, silence) {
		t.Error("the test's connection isn't cut")
	}
	primary.Rejoin()
	if !kept.answersWithin(t, patience) {
		t.Error("the test's connection doesn't go on")
	}
	replica.WaitFor("/bin/sh", "-c", `[ "$(redis-cli get key)" = value ]`)
	// The same connection, from the same port.
	id := func(list string) string { return strings.Join(strings.Fields(list)[:2], " ") }
	if now := ask(t, primary, primary, "client", "list", "type", "replica"); id(now) != id(attached) {
		t.Errorf("the replica was attached as %s, and is as %s", id(attached), id(now))
	}
}

func TestAPodMadeAnewHasTheVolumeAndAnotherAddress(t *testing.T) {
	network := NewNetwork(t, "orders")
	members := startRedis(t, network, 2)
	gone, stays := members[0], members[1]
	ask(t, stays, gone, "set", "key", "value")
	if _, err := gone.Exec(t.Context(), "", "touch", "/tmp/left", "/run/database/left"); err != nil {
		t.Fatal(err)
	}
	before := gone.Address()

	gone.Kill()
	gone.Restart()
	gone.WaitFor("redis-cli", "ping")
	if after := gone.Address(); after != before || !reaches(t, stays, gone) {
		t.Errorf("restarted in place, it is at %s, before at %s", after, before)
	}

	connect(t, gone.Dial, "127.0.0.1:6379") // which keeps the pod's network in being
	if exit := gone.Delete(patience); exit.Code != 0 {
		t.Errorf("deleted, it ended with %d", exit.Code)
	}
	if _, err := stays.Exec(t.Context(), "", "redis-cli", "-h", gone.Host(), "ping"); err == nil || !strings.Contains(err.Error(), "Name or service not known") && !strings.Contains(err.Error(), "name resolution") {
		t.Errorf("without a pod its name gives %v", err)
	}
	if _, err := network.Dial(t.Context(), "tcp", net.JoinHostPort(gone.Host(), "6379")); err == nil || !strings.Contains(err.Error(), "no member has this name") {
		t.Errorf("without a pod its name gives %v", err)
	}
	if _, err := network.Dial(t.Context(), "tcp", net.JoinHostPort(before, "6379")); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("without a pod its address gives %v", err)
	}

	gone.Create()
	gone.WaitFor("redis-cli", "ping")
	if after := gone.Address(); after == before {
		t.Errorf("its address is %s as before", after)
	}
	if answer := ask(t, stays, gone, "get", "key"); answer != "value" {
		t.Errorf("the key holds %q", answer)
	}
	if left, err := gone.Exec(t.Context(), "", "/bin/sh", "-c", "echo /tmp/* /run/database/*"); err != nil || left != "/tmp/* /run/database/*\n" {
		t.Errorf("the pod's own folders still hold %s (%v)", left, err)
	}

	gone.Delete(0)
	gone.LoseVolume()
	if entries, err := os.ReadDir(gone.DataFolder()); err != nil || len(entries) != 0 {
		t.Errorf("the lost volume holds %v (%v)", entries, err)
	}
	gone.Create()
	gone.WaitFor("redis-cli", "ping")
	if answer := ask(t, stays, gone, "get", "key"); answer != "" {
		t.Errorf("after its volume was lost, the key holds %q", answer)
	}
}

// An application goes on trying while the test does something to the members.
func TestAnybodyMayDialWhileAPodIsMadeAnew(t *testing.T) {
	network := NewNetwork(t, "orders")
	member := startRedis(t, network, 1)[0]
	before := member.Address()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var application sync.WaitGroup
	// until dials until it gets an address other than that.
	until := func(dial dialer, to, not string) {
		for ctx.Err() == nil {
			connection, err := dial(ctx, "tcp", to)
			if err == nil {
				reached := connection.RemoteAddr().String()
				_ = connection.Close() // it was only opened
				if reached != not {
					return
				}
			}
			pause, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			<-pause.Done()
			cancel()
		}
		t.Errorf("%s never leads elsewhere than to %s", to, not)
	}
	application.Go(func() { until(network.Dial, member.Host()+":6379", before+":6379") })
	inside, stop := context.WithCancel(ctx)
	application.Go(func() {
		for inside.Err() == nil {
			if connection, err := member.Dial(inside, "tcp", "127.0.0.1:6379"); err == nil {
				_ = connection.Close() // it was only opened
			}
		}
	})
	replace(member)
	stop()
	application.Wait()
}

func TestAPodIsDeletedAsTheKubeletWould(t *testing.T) {
	for sentence, row := range map[string]struct {
		script string
		stop   []string
		grace  time.Duration
		want   int
	}{
		"by SIGTERM, where the engine has nothing else": {"trap 'exit 3' TERM; touch /tmp/up; while :; do sleep 0.01; done", nil, patience, 3},
		"by what the engine has":                        {"trap 'exit 3' TERM; trap 'exit 4' INT; touch /tmp/up; while :; do sleep 0.01; done", []string{"/bin/sh", "-c", "kill -INT 1"}, patience, 4},
		"by SIGTERM, when that fails":                   {"trap 'exit 3' TERM; touch /tmp/up; while :; do sleep 0.01; done", []string{"/bin/false"}, patience, 3},
		"by SIGKILL, when the grace is over":            {"trap '' TERM; touch /tmp/up; while :; do sleep 0.01; done", nil, silence / 10, 137},
		"by SIGKILL, when there is none":                {"trap 'exit 3' TERM; touch /tmp/up; while :; do sleep 0.01; done", nil, 0, 137},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := script("redis:8.0", row.script)
			member.Stop = row.stop
			running := Start(t, member)
			running.WaitFor("ls", "/tmp/up")
			if exit := running.Delete(row.grace); exit.Code != row.want {
				t.Errorf("it ended with %d, want %d", exit.Code, row.want)
			}
		})
	}
}

func TestEachStartHasTheEnvironmentOfItsTime(t *testing.T) {
	member := script("redis:8.0", `echo "${TOPOLOGY_STATE-unset} ${EPOCH-unset}"`)
	given := map[string]string{"TOPOLOGY_STATE": "new"}
	member.Env = given
	running := NewNetwork(t, "orders").Start(0, member)
	var printed []string
	end := func() { printed = append(printed, strings.TrimSpace(running.Wait().Output)) }
	end()
	running.SetEnv(map[string]string{"TOPOLOGY_STATE": "initialized", "EPOCH": "2"})
	running.Restart()
	end()
	running.SetEnv(map[string]string{"EPOCH": ""})
	running.Replace(0)
	end()
	running.SetEnv(nil)
	running.Restart()
	end()
	if want := []string{"new unset", "initialized 2", "unset", "unset unset"}; !slices.Equal(printed, want) {
		t.Errorf("its starts had %q, want %q", printed, want)
	}
	if len(given) != 1 {
		t.Errorf("the test's own map became %v", given)
	}
}

func TestAFrozenMemberStandsStill(t *testing.T) {
	network := NewNetwork(t, "orders")
	members := startRedis(t, network, 2)
	frozen, other := members[0], members[1]
	// The server is a child of the container's first process.
	outside := connect(t, network.Dial, frozen.Host()+":6379")
	frozen.Freeze()
	outside.send(t, "PING")
	if outside.answersWithin(t, silence) || reaches(t, other, frozen) {
		t.Error("it answers")
	}
	frozen.Thaw()
	if !outside.answersWithin(t, patience) || !reaches(t, other, frozen) {
		t.Error("it doesn't go on")
	}
	frozen.Freeze()
	if exit := frozen.Delete(silence / 10); exit.Code != 137 {
		t.Errorf("deleted while it is frozen, it ended with %d, want 137", exit.Code)
	}
	if _, err := os.Stat(filepath.Join(frozen.DataFolder(), "appendonlydir")); err != nil {
		t.Errorf("its volume: %v", err)
	}
}
