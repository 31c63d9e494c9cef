// Package process finds and ends processes by what they hold, never by a recorded number alone.
package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Handle is a process that can't be mistaken for a later one of the same number.
type Handle struct {
	PID int
	fd  int
}

// WithOpenFile returns the processes, but for this one, that have the file open.
func WithOpenFile(path string) ([]Handle, error) {
	want, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Handle
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if hasOpen(pid, want) {
			found = append(found, Handle{pid, fd})
			continue
		}
		_ = unix.Close(fd)
	}
	return found, nil
}

func hasOpen(pid int, want os.FileInfo) bool {
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, descriptor := range descriptors {
		if info, err := os.Stat(descriptor); err == nil && os.SameFile(info, want) {
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
