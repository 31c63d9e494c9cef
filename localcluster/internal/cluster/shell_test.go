// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coolops.cn/database-manager/localcluster/internal/build"
)

// openRunning returns a cluster that counts as running, whose kubectl says what it was given.
func openRunning(t *testing.T, base string) *Cluster {
	t.Helper()
	c, err := Open("unit", base)
	if err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	err = errors.Join(
		os.WriteFile(kubectl, []byte("#!/bin/sh\necho \"$KUBECONFIG|$KUBECACHEDIR|$*\"\n"), 0o700),
		os.MkdirAll(c.Dir, 0o700),
		c.writeConfig(Config{Binaries: map[string]string{build.Kubectl.Name: kubectl}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := c.takeAlive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alive.Close() })
	return c
}

func TestAShellThatEvaluatesEnvUsesTheCluster(t *testing.T) {
	for sentence, folder := range map[string]string{
		"in a plain folder":                            "state",
		"in one with blanks and signs that shells use": `it's "a $HOME" \ of;x=*`,
		"in one with a line's end":                     "a\nb",
	} {
		t.Run(sentence, func(t *testing.T) {
			c := openRunning(t, filepath.Join(t.TempDir(), folder))
			for range 2 { // the second finds the link
				lines, err := c.Env()
				if err != nil {
					t.Fatal(err)
				}
				command := exec.CommandContext(t.Context(), "sh", "-c", `eval "$1"; kubectl get pods; ls / >/dev/null`, "sh", lines)
				output, err := command.CombinedOutput()
				want := c.Kubeconfig() + "|" + c.path("kubectl") + "|get pods\n"
				if err != nil || string(output) != want {
					t.Errorf("kubectl says %q (%v), want %q", output, err, want)
				}
			}
		})
	}
}

func TestEnvFollowsAnotherKubectl(t *testing.T) {
	c := openRunning(t, t.TempDir())
	if _, err := c.Env(); err != nil {
		t.Fatal(err)
	}
	if err := c.writeConfig(Config{Binaries: map[string]string{build.Kubectl.Name: "/newer/kubectl"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Env(); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(c.path("bin", "kubectl")); err != nil || target != "/newer/kubectl" {
		t.Errorf("the link points to %q (%v)", target, err)
	}
	if entries, err := os.ReadDir(c.path("bin")); err != nil || len(entries) != 1 {
		t.Errorf("beside it there is %v (%v)", entries, err)
	}
}

func TestEnvRefusesWhatWouldMislead(t *testing.T) {
	if _, err := open(t).Env(); err == nil || !strings.Contains(err.Error(), "localcluster up --name unit") {
		t.Errorf("absent: %v", err)
	}
	if _, err := openRunning(t, filepath.Join(t.TempDir(), "a:b")).Env(); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("a folder that can't be in PATH: %v", err)
	}
}
