// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/disk"
)

const (
	killTimeout   = 30 * time.Second
	cgroupTimeout = 15 * time.Second
	loopTimeout   = 15 * time.Second
)

// Down ends the cluster, running, crashed or absent, and removes all that it had. Ending its first process makes the
// kernel end every other one, with their mounts, interfaces and packet rules; what is left then are loop devices,
// for a moment, cgroups and files.
// A folder that somebody removed meanwhile changes nothing about it.
func (c *Cluster) Down(ctx context.Context, messages io.Writer) error {
	unlock, err := c.lock(ctx, func(format string, args ...any) {
		_, _ = fmt.Fprintf(messages, format+"\n", args...) // a lost message harms nothing
	})
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
	if err := c.detachDisks(); err != nil {
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

// detachDisks waits until the kernel has unmounted the disks of nodes that have ended: only then their files are free.
func (c *Cluster) detachDisks() error {
	files, err := disk.Files(c.path(disksFolder, "*"))
	if err != nil {
		return err
	}
	return disk.Detach(files, loopTimeout)
}

func (c *Cluster) mountsBelow() ([]string, error) {
	content, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	return mountsBelow(string(content), c.Dir), nil
}

// mountsBelow finds in /proc/self/mounts what is mounted below dir, in the order of mounting.
func mountsBelow(mounts, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var below []string
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 1 {
			if path := unescape.Replace(fields[1]); strings.HasPrefix(path, dir+"/") {
				below = append(below, path)
			}
		}
	}
	return below
}
