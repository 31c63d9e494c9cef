// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e starts real clusters with the command itself and looks at what they do to the machine.
//
// LOCALCLUSTER is the path of the command, LOCALCLUSTER_SOURCE that of its module (default: where this package is).
// The tests need root, and what `localcluster build` makes.
package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cluster is a cluster with a name that nothing else on the machine carries.
type cluster struct {
	command, source, name string
	// base holds the state folder.
	base string
	// options are flags for every command.
	options []string
	// user is whom the command runs as; nil means root.
	user *syscall.Credential
	env  []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	command := os.Getenv("LOCALCLUSTER")
	if command == "" {
		t.Fatal("LOCALCLUSTER must be the path of the command")
	}
	source := os.Getenv("LOCALCLUSTER_SOURCE")
	if source == "" {
		source = ".."
	}
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	name := "lc-e2e-" + strings.ToLower(rand.Text()[:8])
	// Not t.TempDir: another user has to be able to enter it.
	base := filepath.Join(os.TempDir(), name+"-state")
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{command: command, source: source, name: name, base: base, env: os.Environ()}
	t.Cleanup(func() {
		if _, err := c.run(context.Background(), "", "down"); err != nil {
			t.Error(err)
		}
		if err := errors.Join(os.RemoveAll(base), os.RemoveAll(c.filesDir())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// stateDir is the cluster's state folder.
func (c *cluster) stateDir() string { return filepath.Join(c.base, c.name) }

// filesDir is for files that the command is given.
func (c *cluster) filesDir() string { return c.base + "-files" }

// run runs the command and returns its standard output; an error has what it said besides.
func (c *cluster) run(ctx context.Context, input, verb string, args ...string) (string, error) {
	args = append([]string{verb, "--name=" + c.name, "--state-dir=" + c.base, "--source=" + c.source}, append(c.options, args...)...)
	command := exec.CommandContext(ctx, c.command, args...)
	command.Env, command.Dir, command.Stdin = c.env, "/", strings.NewReader(input)
	if c.user != nil {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	}
	var messages strings.Builder
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("localcluster %s: %w: %s", strings.Join(args, " "), err, messages.String())
	}
	return strings.TrimSpace(string(output)), nil
}

// must runs the command, which has to succeed.
func (c *cluster) must(t *testing.T, verb string, args ...string) string {
	t.Helper()
	output, err := c.run(t.Context(), "", verb, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// mustFail runs the command, which has to say text in one line, and change nothing.
func (c *cluster) mustFail(t *testing.T, text, verb string, args ...string) {
	t.Helper()
	_, err := c.run(t.Context(), "", verb, args...)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("it doesn't say %q: %v", text, err)
	}
}

// timed runs the command, and tells how long it took.
func (c *cluster) timed(t *testing.T, verb string, args ...string) time.Duration {
	t.Helper()
	start := time.Now()
	c.must(t, verb, args...)
	elapsed := time.Since(start)
	t.Logf("%s took %s", verb, elapsed.Round(100*time.Millisecond))
	return elapsed
}

// eventually waits until check is satisfied.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		case <-tick.C:
		}
	}
}
