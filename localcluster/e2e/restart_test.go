// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// mustKeepThrough has the objects keep their identities, and the API server its address.
func (c *cluster) mustKeepThrough(t *testing.T, do func(), objects ...string) {
	t.Helper()
	look := func() string {
		var found []string
		for _, object := range objects {
			namespace, name, _ := strings.Cut(object, ":")
			found = append(found, object+" "+c.must(t, "kubectl", "--namespace="+namespace, "get", name, "-o=jsonpath={.metadata.uid} {.metadata.creationTimestamp}"))
		}
		server := c.must(t, "kubectl", "config", "view", "--minify", "-o=jsonpath={.clusters[0].cluster.server}")
		return strings.Join(append(found, server), "\n")
	}
	before := look()
	do()
	if after := look(); after != before {
		t.Errorf("there was\n%s\nand is\n%s", before, after)
	}
}

func restartAlone(t *testing.T, c *cluster) {
	t.Helper()
	const away = 2 * time.Second
	c.mustKeepThrough(t, func() { c.timed(t, "restart") }, "default:deployment/web")
	c.mustKeepThrough(t, func() {
		if elapsed := c.timed(t, "restart", "--kill", "--down-for="+away.String()); elapsed < away {
			t.Errorf("it was away for %s at most", elapsed)
		}
	}, "default:deployment/web")
	// The controllers are back, too.
	c.must(t, "kubectl", "scale", "deployment/web", "--replicas=2")
	c.must(t, "kubectl", "wait", "deployment/web", "--for=jsonpath={.status.unavailableReplicas}=2", "--timeout=60s")
}

// controlPlaneRestarts shows that a node and its pods don't depend on a control plane that is away.
func controlPlaneRestarts(t *testing.T, c *cluster) {
	before := c.lookAtProcesses(t)
	restarts := func() string {
		return c.must(t, "kubectl", "get", "pods", "--all-namespaces", "--selector=app in (cache,writer)",
			"-o=jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].containerID}{\"\\n\"}{end}")
	}
	pods := restarts()
	if !strings.Contains(pods, "containerd://") {
		t.Fatalf("the pods are %q", pods)
	}
	for _, args := range [][]string{{"--kill", "--down-for=2s"}, nil} {
		c.mustKeepThrough(t, func() { c.timed(t, "restart", args...) }, "restricted:pod/writer", "restricted:configmap/kept", ":node/node-1")
		c.nodeIsConnected(t)
		if now := restarts(); now != pods {
			t.Errorf("the pods were\n%s\nand are\n%s", pods, now)
		}
		serviceIsReached(t, c)
	}
	if after := c.lookAtProcesses(t); after.root != before.root {
		t.Errorf("the cluster's process %d is now %d", before.root, after.root)
	}
}

// nodeIsConnected waits until the node does what the API server says, and the API server hears of it.
func (c *cluster) nodeIsConnected(t *testing.T) {
	t.Helper()
	c.must(t, "kubectl", "run", "probe", "--image=redis:8.0", "--", "sleep", "1000")
	c.must(t, "kubectl", "wait", "pod/probe", "--for=condition=Ready", "--timeout=60s")
	c.must(t, "kubectl", "exec", "probe", "--", "true")
	c.must(t, "kubectl", "delete", "pod/probe", "--grace-period=1")
}

// interruptedRestart shows that nothing is left of a restart that was killed.
func interruptedRestart(t *testing.T, c *cluster) {
	c.mustKeepThrough(t, func() {
		c.abandonRestart(t)
		c.timed(t, "up")
	}, "restricted:configmap/kept")
	c.lookAtProcesses(t).killControlPlane(t)
	eventually(t, "a control plane that ended by itself takes the cluster with it", func() error {
		if _, err := c.run(t.Context(), "", "status"); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
	c.timed(t, "up")
	c.mustFail(t, "unknown flag", "restart", "--down=3s")
}

// abandonRestart kills a `restart` while the control plane is away.
func (c *cluster) abandonRestart(t *testing.T) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	ended := make(chan error, 1)
	go func() {
		_, err := c.run(ctx, "", "restart", "--kill", "--down-for=1h")
		ended <- err
	}()
	eventually(t, "the control plane is away", func() error {
		if _, err := c.run(t.Context(), "", "kubectl", "get", "--raw=/readyz"); err == nil {
			return errors.New("it answers")
		}
		return nil
	})
	kill()
	if exit, ok := errors.AsType[*exec.ExitError](<-ended); !ok || exit.String() != "signal: killed" {
		t.Error(fmt.Errorf("restart wasn't killed: %w", exit))
	}
}
