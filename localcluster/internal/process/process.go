// SPDX-License-Identifier: Apache-2.0

// Package process finds and ends processes by what they hold, never by a recorded number alone.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Handle is a process that can't be mistaken for a later one of the same number.
type Handle struct {
	PID int
	fd  int
}

// HoldingLock returns the processes, but for this one, that hold an exclusive lock on the file at that path, or did so
// when it was removed. Those of other users are seen by root only.
func HoldingLock(path string) ([]Handle, error) {
	want, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return find(func(pid int) bool { return pid != os.Getpid() && holdsLock(pid, path, want) })
}

// find returns the processes that are wanted. Each is held while it is looked at, so that it is the one that was.
func find(isWanted func(pid int) bool) ([]Handle, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Handle
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if isWanted(pid) {
			found = append(found, Handle{pid, fd})
			continue
		}
		_ = unix.Close(fd) // it was only looked at
	}
	return found, nil
}

func holdsLock(pid int, path string, want os.FileInfo) bool {
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(descriptors, func(descriptor string) bool {
		return isFile(descriptor, path, want) && isLocked(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, filepath.Base(descriptor)))
	})
}

func isFile(descriptor, path string, want os.FileInfo) bool {
	if name, err := os.Readlink(descriptor); err == nil && name == path+" (deleted)" {
		return true
	}
	info, err := os.Stat(descriptor)
	return err == nil && want != nil && os.SameFile(info, want)
}

// isLocked tells whether the descriptor that info describes has an exclusive lock of flock(2).
func isLocked(info string) bool {
	content, err := os.ReadFile(info)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[0] == "lock:" && fields[2] == "FLOCK" && fields[4] == "WRITE" {
			return true
		}
	}
	return false
}

// Signal sends a signal; a process that has ended is no error.
func (h Handle) Signal(signal unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, signal, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Wait waits until the process has ended, and reports whether it did so in time.
func (h Handle) Wait(timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	for {
		left := time.Until(deadline)
		if left < 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if n == 1 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// Close releases the handle.
func (h Handle) Close() { _ = unix.Close(h.fd) }
