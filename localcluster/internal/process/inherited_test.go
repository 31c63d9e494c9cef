// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatWasInheritedIsNotPassedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	descriptor, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR, 0o600) // open in programs that are started, too
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(descriptor) }()
	isPassedOn := func() bool {
		output, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "readlink /proc/$$/fd/*").Output()
		if err != nil {
			t.Logf("readlink: %v", err) // it has no name for each
		}
		return strings.Contains(string(output), path)
	}
	if !isPassedOn() {
		t.Fatal("the test's own file isn't")
	}
	if err := KeepInherited(); err != nil {
		t.Fatal(err)
	}
	if isPassedOn() {
		t.Error("it is")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
