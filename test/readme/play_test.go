// SPDX-License-Identifier: Apache-2.0

//go:build readme

package readme

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// EXAMPLES_KUBECONFIG is the kubeconfig of the administrator of a cluster that the examples' READMEs are played on; its
// kubectl has to be on the PATH. Without it each test starts a control plane of its own, as the others always do. All of
// them need bin/localcluster.

// TestExamples plays the README of every example, in their order.
func TestExamples(t *testing.T) {
	setup := "export KUBECONFIG=" + quote(os.Getenv("EXAMPLES_KUBECONFIG"))
	if os.Getenv("EXAMPLES_KUBECONFIG") == "" {
		setup = controlPlane(t)
	}
	for _, page := range exampleFiles(t, "README.md") {
		t.Run(filepath.Base(filepath.Dir(page)), func(t *testing.T) {
			s := start(t, nil)
			s.prepare(t, setup)
			// The controllers make these in a new cluster when they get to it.
			for _, object := range []string{"serviceaccount/default", "configmap/kube-root-ca.crt", "service/kubernetes"} {
				s.prepare(t, "kubectl --namespace=default wait --for=create --timeout=1m "+object)
			}
			before := s.objects(t)
			s.play(t, page)
			s.mustBeAsBefore(t, before)
		})
	}
}

// TestHowToGetACluster plays examples/README.md, which starts a cluster and removes it.
func TestHowToGetACluster(t *testing.T) {
	start(t, withStateFolder(t)).play(t, "examples/README.md")
}

// TestSeeItWork plays what the README shows first: it ends with make down.
func TestSeeItWork(t *testing.T) {
	start(t, withStateFolder(t)).play(t, "README.md", seeItWork)
}

// TestInstallIt installs the operator as the README says, on a cluster without nodes.
func TestInstallIt(t *testing.T) {
	s := start(t, nil)
	s.prepare(t, controlPlane(t))
	s.play(t, "README.md", installIt)
}

// played is a session of a test.
type played struct{ *Session }

func start(t *testing.T, env []string) played {
	t.Helper()
	session, err := Start(Options{
		Dir: root, Env: append(freshEnv(), env...), Transcript: t.Output(),
		// A machine that builds Kubernetes the first time takes its time.
		PrintTimeout: time.Minute, CommandTimeout: 45 * time.Minute, EndTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return played{session}
}

// freshEnv is the environment without what whoever runs the tests has set for them or for a cluster.
func freshEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"NAME", "IMAGE", "STEP", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KUBECONFIG"}, name) ||
			strings.HasPrefix(name, "EXAMPLES_")
	})
}

// withStateFolder keeps the session's clusters away from those of the user. It returns variables for the session.
func withStateFolder(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() { // what a session that failed hasn't removed
		left, err := filepath.Glob(filepath.Join(folder, "localcluster", "*"))
		if err != nil {
			t.Error(err)
		}
		for _, state := range left {
			localcluster(t, filepath.Base(state), filepath.Dir(state), "down")
		}
	})
	return []string{"XDG_STATE_HOME=" + folder}
}

// controlPlane starts a cluster without nodes, and returns the command that a shell uses it by.
func controlPlane(t *testing.T) string {
	t.Helper()
	name, folder := "readme-"+strings.ToLower(rand.Text()[:8]), t.TempDir()
	t.Cleanup(func() { localcluster(t, name, folder, "down") })
	localcluster(t, name, folder, "up", "--control-plane-only")
	return localcluster(t, name, folder, "env")
}

// localcluster runs the command. It isn't ended with the test: what it began to make, its cleanup has to find.
func localcluster(t *testing.T, name, folder string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "bin/localcluster", append([]string{"--name=" + name, "--state-dir=" + folder}, args...)...)
	command.Dir = root
	var messages strings.Builder
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		t.Fatalf("localcluster %s: %v: %s", strings.Join(args, " "), err, messages.String())
	}
	return string(output)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// prepare runs commands that stand in no README, and returns what they print.
func (s played) prepare(t *testing.T, command string) string {
	t.Helper()
	var transcript strings.Builder
	shown := s.options.Transcript
	s.options.Transcript = &transcript
	defer func() { s.options.Transcript = shown }()
	if err := s.Play(t.Context(), []Command{{Path: "preparation", Line: 1, Text: command}}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(transcript.String(), "$ "+command+"\n")
}

// objects are the names of what a README could leave on a cluster.
func (s played) objects(t *testing.T) []string {
	t.Helper()
	return strings.Fields(s.prepare(t, `kubectl get namespaces,nodes,persistentvolumes,customresourcedefinitions,clusterroles,clusterrolebindings -o name
kubectl --namespace=default get all,configmaps,secrets,serviceaccounts,roles,rolebindings,leases,persistentvolumeclaims -o name`))
}

// mustBeAsBefore waits until the cluster has what it had before: a namespace takes some time to go.
func (s played) mustBeAsBefore(t *testing.T, before []string) {
	t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		now := s.objects(t)
		if slices.Equal(now, before) {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("the README leaves the cluster with\n%s\nwhich had\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
	}
}

// play plays a page, or some of its sections.
func (s played) play(t *testing.T, page string, sections ...string) {
	t.Helper()
	document, err := Read(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	document.Path = page
	commands, err := document.Commands(sections...)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) == 0 {
		t.Fatalf("%s has no commands in the sections %q", page, sections)
	}
	if err := s.Play(t.Context(), commands); err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Errorf("%s: %v", page, err)
	}
}
