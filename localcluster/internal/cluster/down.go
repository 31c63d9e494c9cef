package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/cgroup"
)

const (
	killTimeout   = 30 * time.Second
	cgroupTimeout = 15 * time.Second
)

// Down ends the cluster, running, crashed or absent, and removes all that it had. Ending its first process makes the
// kernel end every other one, with their mounts, interfaces and packet rules; what is left then are cgroups and files.
func (c *Cluster) Down() error {
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		return cgroup.Remove(c.Cgroup(), cgroupTimeout)
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.kill(); err != nil {
		return err
	}
	if err := c.unmount(); err != nil {
		return err
	}
	if err := cgroup.Remove(c.Cgroup(), cgroupTimeout); err != nil {
		return fmt.Errorf("remove cgroups: %w", err)
	}
	return os.RemoveAll(c.Dir)
}

func (c *Cluster) kill() error {
	holders, err := c.holders()
	if err != nil {
		return err
	}
	for _, holder := range holders {
		defer holder.Close()
		if err := holder.Signal(unix.SIGKILL); err != nil {
			return fmt.Errorf("end process %d: %w", holder.PID, err)
		}
		if !holder.Wait(killTimeout) {
			return fmt.Errorf("process %d hasn't ended within %s of SIGKILL: something in it waits for the kernel; try again", holder.PID, killTimeout)
		}
	}
	return nil
}

// unmount removes mounts below the state folder. All of ours are in namespaces that are gone by now; one that somebody
// made there by hand would keep the folder from being removed, or have its files deleted.
func (c *Cluster) unmount() error {
	below, err := c.mountsBelow()
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(below) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return nil
}

func (c *Cluster) mountsBelow() ([]string, error) {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var below []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], c.Dir+"/") {
			below = append(below, fields[1])
		}
	}
	return below, nil
}
