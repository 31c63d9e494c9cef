// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	nobody = 65534
	// readyWithin is for a loaded machine; an idle one takes 3 s.
	readyWithin = 45 * time.Second
)

// TestControlPlaneOfAnOrdinaryUser starts a control plane without root, with a cache that its user can only read.
func TestControlPlaneOfAnOrdinaryUser(t *testing.T) {
	c := newCluster(t)
	c.must(t, "build", "--control-plane-only")
	becomeNobody(t, c)
	c.mustFail(t, "a node needs root", "up")
	if elapsed := c.timed(t, "up", "--control-plane-only"); elapsed > readyWithin {
		t.Errorf("up took %s", elapsed)
	}
	c.timed(t, "up", "--control-plane-only")
	c.must(t, "kubectl", "create", "deployment", "web", "--image=nginx")
	c.must(t, "kubectl", "wait", "deployment/web", "--for=jsonpath={.status.unavailableReplicas}=1", "--timeout=30s")
	c.mustFail(t, "has no node", "load-image", os.DevNull)
	restartAlone(t, c)

	c.lookAtProcesses(t).kill(t)
	c.mustFail(t, "isn't running", "kubectl", "get", "pods")
	c.timed(t, "up", "--control-plane-only")
	c.must(t, "kubectl", "get", "deployment", "web")
	all := c.lookAtProcesses(t)
	all.kill(t)
	c.timed(t, "down")
	c.mustBeGone(t, all)

	c.must(t, "up", "--control-plane-only")
	c.abandonRestart(t)
	c.mustFail(t, "isn't running", "restart")
	c.timed(t, "up", "--control-plane-only")
	all = c.lookAtProcesses(t)
	if err := os.RemoveAll(c.stateDir()); err != nil {
		t.Fatal(err)
	}
	c.mustFail(t, "still runs", "up", "--control-plane-only")
	c.timed(t, "down")
	c.mustBeGone(t, all)
}

// becomeNobody has the cluster's commands run as a user who owns nothing but the folder of the state.
func becomeNobody(t *testing.T, c *cluster) {
	t.Helper()
	root := c.filesDir()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	command, source, cache := filepath.Join(root, "localcluster"), filepath.Join(root, "source"), filepath.Join(root, "cache")
	// All that root has may be where nobody else can go.
	err = errors.Join(
		os.Mkdir(root, 0o755), os.Chown(c.base, nobody, nobody), os.Mkdir(cache, 0o755),
		copyFile(c.command, command), os.CopyFS(source, os.DirFS(c.source)),
	)
	for _, component := range []string{"control-plane", "kubectl", "kwok"} {
		paths, globErr := filepath.Glob(filepath.Join(user, "localcluster", component+"-????????????????"))
		err = errors.Join(err, globErr)
		for _, path := range paths {
			err = errors.Join(err, linkOrCopy(path, filepath.Join(cache, filepath.Base(path))))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	c.command, c.source = command, source
	c.options = []string{"--cache-dir=" + cache}
	c.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.base}
	c.user = &syscall.Credential{Uid: nobody, Gid: nobody}
}

func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to) // the folder of temporary files may be of another file system
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
