// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

func TestAReservedPortRefusesConnectionsUntilItsHolderListens(t *testing.T) {
	before, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(before)
	if _, err := reserve(port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("while another listens: %v", err)
	}
	// A connection that was open when its server ended, as a watch is.
	address := before.Addr().String()
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server, err := before.Accept()
	if err := errors.Join(err, before.Close(), server.Close()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	socket, err := reserve(port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection: %v", err)
	}
	if err := unix.Listen(int(socket.Fd()), 1); err != nil {
		t.Fatal(err)
	}
	again, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close() // it was made, which is all
}

func TestAControlPlaneThatEndedByItselfIsNotWantedBack(t *testing.T) {
	c := open(t)
	if again, err := c.awaitReturn(t.Context()); again || err != nil {
		t.Errorf("it is %t (%v)", again, err)
	}
}

func TestAControlPlaneComesBackWhenItsRestartLetsIt(t *testing.T) {
	c := open(t)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	away, err := filelock.Lock(t.Context(), c.path(awayFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if again, err := c.awaitReturn(short); again || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is away: %t (%v)", again, err)
	}
	if err := away.Close(); err != nil { // as when its holder is killed
		t.Fatal(err)
	}
	if again, err := c.awaitReturn(t.Context()); !again || err != nil {
		t.Errorf("it is %t (%v)", again, err)
	}
	if again, err := c.awaitReturn(t.Context()); again || err != nil {
		t.Errorf("the next end is %t (%v)", again, err)
	}
}

func TestRestartRefusesWhatIsNotUp(t *testing.T) {
	printer := progress.NewPrinter(os.Stderr)
	c := open(t)
	if err := c.Restart(t.Context(), Restart{}, printer); err == nil || !strings.Contains(err.Error(), "localcluster up --name unit") {
		t.Errorf("absent: %v", err)
	}
	half := openRunning(t, t.TempDir())
	if err := half.Restart(t.Context(), Restart{}, printer); err == nil || !strings.Contains(err.Error(), "isn't complete") {
		t.Errorf("half started: %v", err)
	}
}
