// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/process"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

const (
	// awayFile says that the control plane of a cluster with nodes is to be started again when it ends.
	awayFile = "control-plane-away"
	// controlPlaneAliveFile is locked by the control plane of a cluster with nodes; by it, it is found from outside.
	controlPlaneAliveFile = "control-plane-alive"
	// endTimeout is for a control plane that was asked to end: it gives each of its two stages 5 s.
	endTimeout = 20 * time.Second
)

// Restart says how a control plane is to end, and when it comes back.
type Restart struct {
	// Kill has it end as in a crash.
	Kill bool
	// Away is how long there is none.
	Away time.Duration
}

// Restart ends the control plane, starts it again on the same data, keys and port, and waits until it is ready. Nodes
// go on without it meanwhile. When ctx ends the control plane comes back at once.
func (c *Cluster) Restart(ctx context.Context, restart Restart, printer *progress.Printer) error {
	unlock, err := c.lock(ctx, printer.Printf)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	if err := os.Remove(c.path(completeFile)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the start of cluster %q isn't complete: `localcluster up --name %s` goes on with it", c.Name, c.Name)
	} else if err != nil {
		return err
	}
	step := printer.Start("restarting the control plane of cluster " + c.Name)
	err = c.restart(ctx, config, restart)
	step.End(err, "ready")
	if err != nil {
		return fmt.Errorf("restart the control plane of cluster %s: %w; `localcluster up --name %s` tries again, and the logs are in %s", c.Name, err, c.Name, c.LogDir())
	}
	return os.WriteFile(c.path(completeFile), nil, 0o600)
}

func (c *Cluster) restart(ctx context.Context, config Config, restart Restart) error {
	again := c.restartProcess
	if len(config.Nodes) > 0 {
		again = c.restartMember
	}
	if err := again(ctx, config, restart); err != nil {
		return err
	}
	return c.waitForAPI(ctx)
}

// restartProcess is for a control plane that is the cluster's only process.
func (c *Cluster) restartProcess(ctx context.Context, config Config, restart Restart) error {
	if err := endHolder(c.path(aliveFile), restart.Kill); err != nil {
		return err
	}
	socket, err := reserve(config.Port)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }() // the cluster's process has its own copy
	pause(ctx, restart.Away)
	if err := unix.Listen(int(socket.Fd()), unix.SOMAXCONN); err != nil {
		return fmt.Errorf("listen for API requests: %w", err)
	}
	return c.spawn(context.WithoutCancel(ctx), config, socket)
}

// restartMember is for a control plane beside nodes: the cluster's first process starts it again as soon as it may. That
// is when nobody has the lock on awayFile, so that a restart which is killed keeps nothing away.
func (c *Cluster) restartMember(ctx context.Context, _ Config, restart Restart) error {
	away, err := filelock.Lock(ctx, c.path(awayFile), nil)
	if err != nil {
		return err
	}
	defer func() { _ = away.Close() }() // nothing was written
	if err := endHolder(c.path(controlPlaneAliveFile), restart.Kill); err != nil {
		return errors.Join(err, os.Remove(away.Name()))
	}
	pause(ctx, restart.Away)
	return nil
}

// awaitReturn tells whether a control plane that has ended is wanted back, and waits until it may come.
func (c *Cluster) awaitReturn(ctx context.Context) (bool, error) {
	if _, err := os.Stat(c.path(awayFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil // it ended by itself
	} else if err != nil {
		return false, err
	}
	away, err := filelock.Lock(ctx, c.path(awayFile), nil)
	if err != nil {
		return false, err
	}
	return true, errors.Join(os.Remove(away.Name()), away.Close())
}

// endHolder ends the process that holds the lock, and waits for it.
func endHolder(path string, kill bool) error {
	holders, err := process.HoldingLock(path)
	if err != nil {
		return err
	}
	if len(holders) == 0 {
		return errors.New("its process isn't found: it ended at this moment, or belongs to another user")
	}
	for _, holder := range holders {
		defer holder.Close()
		if err := end(holder, kill); err != nil {
			return fmt.Errorf("end process %d: %w", holder.PID, err)
		}
	}
	return nil
}

func end(holder process.Handle, kill bool) error {
	if !kill {
		if err := holder.Signal(unix.SIGTERM); err != nil {
			return err
		}
		if holder.Wait(endTimeout) {
			return nil
		}
	}
	if err := holder.Signal(unix.SIGKILL); err != nil {
		return err
	}
	if !holder.Wait(killTimeout) {
		return fmt.Errorf("it still runs %s after SIGKILL", killTimeout)
	}
	return nil
}

// reserve takes a port on 127.0.0.1 that nobody listens on. Until its holder does, connections to it are refused, and
// the kernel gives it to no socket that asks for any port, neither another server's nor a client's.
func reserve(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "listener")
	// Connections of the server before are in their last wait.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take port %d on 127.0.0.1: %w", port, err), socket.Close())
	}
	return socket, nil
}

// pause ends early with ctx.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
