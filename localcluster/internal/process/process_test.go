// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hold starts a process that has the file open, with a lock of that kind, and nothing else to do.
func hold(t *testing.T, path string, kind int) int {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Flock(int(file.Fd()), kind|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "cat")
	command.ExtraFiles = []*os.File{file}
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // killed with the test's context
	return command.Process.Pid
}

func TestHoldingLock(t *testing.T) {
	for sentence, row := range map[string]struct {
		kind   int
		remove bool
		found  bool
	}{
		"the process that has the lock is found":                 {unix.LOCK_EX, false, true},
		"it is found when somebody removed the file":             {unix.LOCK_EX, true, true},
		"a process that only looks at the file is none of ours":  {unix.LOCK_SH, false, false},
		"nor is one that looked at a file that was removed then": {unix.LOCK_SH, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "alive")
			pid := hold(t, path, row.kind)
			if row.remove {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			handles, err := HoldingLock(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, handle := range handles {
				defer handle.Close()
			}
			if found := len(handles) == 1 && handles[0].PID == pid; found != row.found || len(handles) > 1 {
				t.Errorf("found %v, process is %d", handles, pid)
			}
		})
	}
}

func TestHandleEndsItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	hold(t, path, unix.LOCK_EX)
	handles, err := HoldingLock(path)
	if err != nil || len(handles) != 1 {
		t.Fatalf("found %v (%v)", handles, err)
	}
	defer handles[0].Close()
	if handles[0].Wait(0) {
		t.Error("it has ended before it was told to")
	}
	if err := handles[0].Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !handles[0].Wait(10 * time.Second) {
		t.Error("it hasn't ended")
	}
}
