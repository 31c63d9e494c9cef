// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes and removes this project's own groups below the machine's cgroup mounts, which it leaves as
// they are.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mounted is a cgroup file system: a v1 hierarchy, or v2.
type mounted struct {
	path string
	v2   bool
}

// mounts reads where the machine has cgroup file systems.
func mounts() ([]mounted, error) {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var found []mounted
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			found = append(found, mounted{fields[1], fields[2] == "cgroup2"})
		}
	}
	return found, nil
}

// Mounted tells whether the machine has a cgroup file system.
func Mounted() bool {
	all, err := mounts()
	return err == nil && len(all) > 0
}

// Create makes the group, given as a path like `cluster/node`, below every cgroup mount.
func Create(group string) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	return create(all, group)
}

func create(all []mounted, group string) error {
	for _, m := range all {
		path := m.path
		for element := range strings.SplitSeq(group, "/") {
			parent := path
			path = filepath.Join(path, element)
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make cgroup: %w", err)
			}
			if err := inherit(m, parent, path); err != nil {
				return fmt.Errorf("set up cgroup %s: %w", path, err)
			}
		}
	}
	return nil
}

// inherit gives a new group what it needs from its parent before a process may be put in it: v1's cpuset starts
// empty, and v2 hands down only the controllers that the parent lists.
func inherit(m mounted, parent, path string) error {
	if m.v2 {
		return handDownControllers(parent)
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(path, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// handDownControllers lets parent's groups use what parent may use. Where parent is the mount's own root, that is a
// setting of the machine: only what is missing is added, which on a machine of systemd is nothing but hugetlb, and
// which a kubelet would add too.
func handDownControllers(parent string) error {
	available, err := controllers(parent, "cgroup.controllers")
	if err != nil {
		return err
	}
	handedDown, err := controllers(parent, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	for _, controller := range available {
		if !slices.Contains(podControllers(), controller) || slices.Contains(handedDown, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// podControllers are those of v2 by which the kubelet confines pods.
func podControllers() []string { return []string{"cpu", "cpuset", "hugetlb", "memory", "pids"} }

func controllers(group, file string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(group, file))
	return strings.Fields(string(content)), err
}

// Remove removes the group, with those below it, from every cgroup mount. A group is busy for a moment after its
// last process has ended, so it is tried until the timeout.
func Remove(group string, timeout time.Duration) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	return remove(all, group, timeout)
}

func remove(all []mounted, group string, timeout time.Duration) error {
	deadline := time.After(timeout)
	for {
		var err error
		for _, m := range all {
			err = errors.Join(err, removeTree(filepath.Join(m.path, group)))
		}
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func removeTree(path string) error {
	var folders []string
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	for _, folder := range slices.Backward(folders) {
		if removeErr := os.Remove(folder); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
