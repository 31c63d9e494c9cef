// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// host is what of the machine no cluster may change.
type host struct{ interfaces, routes, rules, mounts string }

func lookAtHost(t *testing.T) host {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var h host
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		h.interfaces += fmt.Sprintln(i.Index, i.Name, i.Flags, addresses)
	}
	h.routes = columns(t, "/proc/net/route", 0, 1, 2, 7) + columns(t, "/proc/net/ipv6_route", 0, 1, 4, 9)
	h.rules = packetRules(t)
	h.mounts = columns(t, "/proc/self/mounts", 0, 1, 2, 3)
	return h
}

// columns are the fields of a file in /proc that aren't counters.
func columns(t *testing.T, path string, wanted ...int) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		var kept []string
		for _, column := range wanted {
			kept = append(kept, fields[column])
		}
		lines = append(lines, strings.Join(kept, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// packetRules lists the host's rules, old and new, with the nft that is in a node's file system.
func packetRules(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/usr/sbin/nft", "--stateless", "list", "ruleset")
	command.SysProcAttr, command.Dir = &syscall.SysProcAttr{Chroot: nodeRoot(t)}, "/"
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("list packet rules: %v: %s", err, output)
	}
	// Rules of the older iptables are none of nft's.
	for _, name := range []string{"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"} {
		if tables, err := os.ReadFile(name); err == nil {
			output = append(output, tables...)
		}
	}
	return string(output)
}

// nodeRoot is the file system of a node, with its nft.
func nodeRoot(t *testing.T) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	roots, err := filepath.Glob(filepath.Join(user, "localcluster", "node-*", "rootfs"))
	if err != nil || len(roots) == 0 {
		t.Fatalf("no node's file system in the cache (%v): run localcluster build", err)
	}
	return roots[0]
}

func (h host) mustBeAsBefore(t *testing.T, when string) {
	t.Helper()
	now := lookAtHost(t)
	for what, pair := range map[string][2]string{
		"interfaces": {h.interfaces, now.interfaces}, "routes": {h.routes, now.routes},
		"packet rules": {h.rules, now.rules}, "mounts": {h.mounts, now.mounts},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the host's %s were\n%s\nand are\n%s", when, what, pair[0], pair[1])
		}
	}
}

// processes are a cluster's processes, as they were at one time.
type processes struct {
	// root is the process that the cluster lives and dies with.
	root int
	// handles are of all, by their numbers.
	handles map[int]int
	// namespaces are those that are theirs alone, such as net:[4026532201].
	namespaces map[string]bool
}

// lookAtProcesses finds the process that was started for the cluster, and those that it is an ancestor of.
func (c *cluster) lookAtProcesses(t *testing.T) processes {
	t.Helper()
	children := map[int][]int{}
	found := processes{handles: map[int]int{}, namespaces: map[string]bool{}}
	for _, pid := range allProcesses(t) {
		parent, err := parentOf(pid)
		if err != nil {
			continue // it has ended
		}
		children[parent] = append(children[parent], pid)
		if content, _ := os.ReadFile(procPath(pid, "cmdline")); parentIsOutside(parent) && strings.Contains(string(content), c.name) {
			found.root = pid
		}
	}
	if found.root == 0 {
		t.Fatal("the cluster has no process")
	}
	for todo := []int{found.root}; len(todo) > 0; todo = todo[1:] {
		pid := todo[0]
		todo = append(todo, children[pid]...)
		if handle, err := unix.PidfdOpen(pid, 0); err == nil {
			found.handles[pid] = handle
			t.Cleanup(func() { _ = unix.Close(handle) })
		}
		for _, kind := range namespaceKinds() {
			if name, err := os.Readlink(procPath(pid, "ns", kind)); err == nil && name != ownNamespace(t, kind) {
				found.namespaces[name] = true
			}
		}
	}
	return found
}

// parentIsOutside tells whether a process with that parent is a cluster's first: whoever started it has ended.
func parentIsOutside(parent int) bool {
	content, err := os.ReadFile(procPath(parent, "cmdline"))
	return err != nil || !slices.ContainsFunc([]string{"internal-", "containerd", "--pki-dir"}, func(part string) bool { return strings.Contains(string(content), part) })
}

func namespaceKinds() []string { return []string{"net", "mnt", "pid", "uts", "ipc"} }

func ownNamespace(t *testing.T, kind string) string {
	t.Helper()
	name, err := os.Readlink(procPath(os.Getpid(), "ns", kind))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func procPath(pid int, elements ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(pid)}, elements...)...)
}

func allProcesses(t *testing.T) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parentOf(pid int) (int, error) {
	content, err := os.ReadFile(procPath(pid, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "PPid:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fs.ErrNotExist
}

// kill ends the cluster's first process as a crash would, and waits until the kernel has ended all the others.
func (p processes) kill(t *testing.T) {
	t.Helper()
	if err := unix.PidfdSendSignal(p.handles[p.root], unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the processes end", func() error {
		if left := p.alive(); len(left) > 0 {
			return fmt.Errorf("%v live", left)
		}
		return nil
	})
}

// killControlPlane ends etcd, the API server and the controllers as a crash would.
func (p processes) killControlPlane(t *testing.T) {
	t.Helper()
	for pid, handle := range p.handles {
		program, err := os.Readlink(procPath(pid, "exe"))
		if err != nil || !strings.HasPrefix(filepath.Base(program), "control-plane") {
			continue
		}
		if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no control plane")
}

// killProgram ends a program of the node as a crash would. The node starts it again.
func (p processes) killProgram(t *testing.T, command string) {
	t.Helper()
	for pid, handle := range p.handles {
		if content, err := os.ReadFile(procPath(pid, "cmdline")); err != nil || !strings.Contains(string(content), command) {
			continue
		}
		if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("there is no %s", command)
}

func (p processes) alive() []int {
	var left []int
	for _, pid := range slices.Sorted(maps.Keys(p.handles)) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.handles[pid]), Events: unix.POLLIN}}, 0); n == 0 || err != nil {
			left = append(left, pid)
		}
	}
	return left
}

// mustBeGone looks for everything that a cluster could have left behind. before is what it consisted of.
func (c *cluster) mustBeGone(t *testing.T, before processes) {
	t.Helper()
	for _, pid := range before.alive() {
		t.Errorf("process %d is left", pid)
	}
	for _, pid := range allProcesses(t) {
		for _, trace := range c.tracesIn(t, pid) {
			t.Errorf("process %d: %s", pid, trace)
		}
	}
	for _, path := range c.cgroups(t) {
		t.Errorf("cgroup %s is left", path)
	}
	if _, err := os.Stat(c.stateDir()); !os.IsNotExist(err) {
		t.Errorf("the state folder is left (%v)", err)
	}
}

// tracesIn are the places where a process refers to the cluster.
func (c *cluster) tracesIn(t *testing.T, pid int) []string {
	t.Helper()
	var traces []string
	for _, file := range []string{"cmdline", "environ", "mountinfo", "cgroup"} {
		if content, err := os.ReadFile(procPath(pid, file)); err == nil && strings.Contains(string(content), c.name) {
			traces = append(traces, file)
		}
	}
	links := []string{procPath(pid, "cwd"), procPath(pid, "root"), procPath(pid, "exe")}
	descriptors, err := filepath.Glob(procPath(pid, "fd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range append(links, descriptors...) {
		if target, err := os.Readlink(link); err == nil && strings.Contains(target, c.name) {
			traces = append(traces, link+" is "+target)
		}
	}
	return traces
}

// cgroups are the groups that carry the cluster's name.
func (c *cluster) cgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // another's, that has just gone
		}
		if err == nil && entry.IsDir() && strings.Contains(entry.Name(), c.name) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
