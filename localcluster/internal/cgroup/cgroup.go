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

// Create makes the group, given as a path like `cluster/node`, below every cgroup mount.
func Create(group string) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("this machine has no cgroup mounted: pods can't be confined")
	}
	for _, m := range all {
		path := m.path
		for _, element := range strings.Split(group, "/") {
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

func handDownControllers(parent string) error {
	available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the group, with those below it, from every cgroup mount. A group is busy for a moment after its
// last process has ended, so it is tried until the timeout.
func Remove(group string, timeout time.Duration) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	for {
		err = nil
		for _, m := range all {
			err = errors.Join(err, removeTree(filepath.Join(m.path, group)))
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
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

// Existing lists where the group exists.
func Existing(group string) ([]string, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range all {
		path := filepath.Join(m.path, group)
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found, nil
}
