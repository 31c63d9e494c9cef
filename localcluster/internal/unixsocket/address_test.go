// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASocketInADeepFolderIsReached(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30), "socket")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Listen("unix", path); err == nil {
		t.Fatalf("the kernel takes %d bytes", len(path))
	}
	address, err := Address(path)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("it isn't where it was to be: %v", err)
	}
	client, err := Address(path)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("unix", client)
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is left (%v)", err)
	}
}

func TestAFolderThatIsMissingIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "socket")
	if _, err := Address(path); err == nil || !strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("it says %v", err)
	}
}
