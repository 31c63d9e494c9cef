// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/images"
)

// What a cluster needs, in bytes. A cold build of Kubernetes takes most of it.
const (
	gib = 1 << 30
	// diskCold and diskWarm are needed in the cache before and after the builds; diskState for a cluster's state.
	diskCold, diskWarm, diskState = 12 * gib, 1 * gib, 1 * gib
	memoryCold, memoryWarm        = 4 * gib, 1 * gib
)

// Machine is what the checks before a start look at.
type Machine struct {
	OS  string
	UID int
	// HasApt and HasGo tell whether apt-get and go can be run.
	HasApt, HasGo bool
	// MayIsolate tells whether this process may make namespaces and interfaces in them.
	MayIsolate bool
	// HasCgroups tells whether a cgroup file system is mounted.
	HasCgroups bool
	// MemoryKiB is the memory that programs can still get.
	MemoryKiB int64
	// FreeBytes tells how much a user may write in the file system of a folder that may not exist yet.
	FreeBytes func(dir string) (uint64, error)
	// PortFree tells whether 127.0.0.1:port can be listened on.
	PortFree func(port int) error
}

// ThisMachine looks at the machine.
func ThisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, UID: os.Geteuid(), HasApt: isProgram("apt-get"), HasGo: isProgram("go"),
		MayIsolate: hasCapabilities(unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN), HasCgroups: cgroup.Mounted(),
		MemoryKiB: availableMemory(), FreeBytes: freeBytes, PortFree: portFree,
	}
}

// Needs is what a start is going to need of a machine.
type Needs struct {
	Nodes bool
	// Built tells that the programs are in the cache, Unpacked that the container runtime and the images are.
	Built, Unpacked bool
	CacheDir        string
	// StateDir is empty, and Port 0, where nothing is to be started.
	StateDir string
	Port     int
}

// Check refuses, in one sentence that says what to do, before anything is changed.
func (m Machine) Check(needs Needs) error {
	if m.OS != "linux" {
		return fmt.Errorf("this machine runs %s: a cluster needs Linux", m.OS)
	}
	if needs.Nodes {
		if err := m.checkNode(needs); err != nil {
			return err
		}
	}
	if !needs.Built && !m.HasGo {
		return errors.New("go isn't on the PATH: it builds Kubernetes from its modules; install Go, or add its folder to the PATH")
	}
	if err := m.checkMemory(needs); err != nil {
		return err
	}
	if err := m.checkDisk(needs); err != nil {
		return err
	}
	if needs.Port != 0 {
		if err := m.PortFree(needs.Port); err != nil {
			return fmt.Errorf("port %d on 127.0.0.1 is taken: choose another with --port, or 0 for any that is free", needs.Port)
		}
	}
	return nil
}

func (m Machine) checkNode(needs Needs) error {
	switch {
	case m.UID != 0:
		return errors.New("a node needs root: run it as root, or without a node with --control-plane-only")
	case !m.MayIsolate:
		return errors.New("root may not make namespaces here, as in a container without privileges: run it on the machine itself, or without a node with --control-plane-only")
	case !m.HasCgroups:
		return errors.New("no cgroup file system is mounted, and without one pods can't be confined: mount one on /sys/fs/cgroup")
	case !needs.Unpacked && !m.HasApt:
		return images.ErrNoApt
	}
	return nil
}

func (m Machine) checkMemory(needs Needs) error {
	need, purpose := int64(memoryWarm), "a cluster"
	if !needs.Built {
		need, purpose = memoryCold, "building Kubernetes"
	}
	if have := m.MemoryKiB << 10; have < need {
		return fmt.Errorf("%.1f GiB of memory are available and %s needs %d GiB: end other programs first", float64(have)/gib, purpose, need/gib)
	}
	return nil
}

func (m Machine) checkDisk(needs Needs) error {
	cache := uint64(diskWarm)
	if !needs.Built {
		cache = diskCold
	}
	for _, place := range []struct {
		dir, option string
		need        uint64
	}{{needs.CacheDir, "--cache-dir", cache}, {needs.StateDir, "--state-dir", diskState}} {
		if place.dir == "" {
			continue
		}
		free, err := m.FreeBytes(place.dir)
		if err != nil {
			return fmt.Errorf("ask for the free space of %s: %w", place.dir, err)
		}
		if free < place.need {
			return fmt.Errorf("%s has %.1f GiB free and %d GiB are needed: free some, or name another folder with %s", place.dir, float64(free)/gib, place.need/gib, place.option)
		}
	}
	return nil
}

func availableMemory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err == nil {
				return kib
			}
		}
	}
	return 0
}

func freeBytes(dir string) (uint64, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(dir, &stat)
		if errors.Is(err, unix.ENOENT) && dir != "/" {
			dir = filepath.Dir(dir)
			continue
		}
		return stat.Bavail * uint64(stat.Bsize), err
	}
}

func portFree(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

func isProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// hasCapabilities tells whether this process has all of them in effect.
func hasCapabilities(wanted ...int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	for _, capability := range wanted {
		if data[capability/32].Effective&(1<<(capability%32)) == 0 {
			return false
		}
	}
	return true
}
