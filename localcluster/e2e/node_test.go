// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/workload.yaml
var workload string

// TestClusterWithANode lives through a cluster's life, in one test: a start takes 10 s, and each part needs one.
func TestClusterWithANode(t *testing.T) {
	c := newCluster(t)
	c.must(t, "build", "--fake") // what listing the host's packet rules needs is made with it
	host := lookAtHost(t)
	refusalsOfAnAbsentCluster(t, c)

	c.timed(t, "up", "--fake=1")
	part := func(name string, do func(t *testing.T, c *cluster)) {
		t.Run(name, func(t *testing.T) { do(t, c) })
	}
	part("a second up is harmless", secondUp)
	part("other nodes are refused while it runs", func(t *testing.T, c *cluster) {
		c.mustFail(t, "is running with nodes", "up", "--control-plane-only")
	})
	part("status, kubeconfig and logs tell of it", commandsTell)
	part("an image is loaded and runs", loadImage)
	part("a restricted pod writes to a volume", restrictedPodWrites)
	part("a pod that is deleted is replaced", podIsReplaced)
	part("a pod finds a Service by name and reaches it", serviceIsReached)
	part("a fake node takes the pods that ask for it", fakeNodesTakeWhoAsks)
	part("the control plane restarts, and nodes and pods go on", controlPlaneRestarts)
	part("up finishes a restart that was interrupted", interruptedRestart)
	host.mustBeAsBefore(t, "while it runs")

	c.lookAtProcesses(t).kill(t)
	c.mustFail(t, "isn't running", "status")
	c.timed(t, "up")
	part("data outlive a crash", dataAreThere)

	all := c.lookAtProcesses(t)
	if len(c.cgroups(t)) == 0 || len(all.namespaces) < 4 || len(all.handles) < 8 {
		t.Errorf("the search for traces is blind: %d cgroups, %v, %v", len(c.cgroups(t)), all.namespaces, all.handles)
	}
	c.timed(t, "down")
	c.mustBeGone(t, all)
	host.mustBeAsBefore(t, "after down")

	c.timed(t, "up")
	c.abandonRestart(t)
	all = c.lookAtProcesses(t)
	all.kill(t)
	c.timed(t, "down")
	c.mustBeGone(t, all)
	host.mustBeAsBefore(t, "after a crash and down")
	c.must(t, "down") // of nothing
}

func refusalsOfAnAbsentCluster(t *testing.T, c *cluster) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.mustFail(t, "port "+port+" on 127.0.0.1 is taken", "up", "--port="+port)
	c.mustFail(t, "it must be 1 to 30 lower-case letters", "up", "--name=Bad_Name")
	c.mustFail(t, "there is no cluster", "status")
	if _, err := os.Stat(c.stateDir()); !os.IsNotExist(err) {
		t.Errorf("a refusal changed something (%v)", err)
	}
}

func secondUp(t *testing.T, c *cluster) {
	before := c.lookAtProcesses(t)
	c.timed(t, "up")
	if after := c.lookAtProcesses(t); after.root != before.root || len(before.alive()) < len(before.handles) {
		t.Errorf("process %d is now %d, of %d processes %d live", before.root, after.root, len(before.handles), len(before.alive()))
	}
}

func commandsTell(t *testing.T, c *cluster) {
	if status := c.must(t, "status"); !strings.Contains(status, "node node-1  ready") {
		t.Errorf("status is\n%s", status)
	}
	kubeconfig := c.must(t, "kubeconfig")
	if names := c.must(t, "kubectl", "--kubeconfig="+kubeconfig, "get", "nodes", "-o=name"); names != "node/fake-1\nnode/node-1" {
		t.Errorf("nodes are %q", names)
	}
	for _, component := range []string{"cluster", "control-plane", "kwok", "node-1", "node-1-containerd", "node-1-kubelet", "node-1-kube-proxy"} {
		if list := strings.Fields(c.must(t, "logs")); !slices.Contains(list, component) {
			t.Errorf("there is no log of %s in %q", component, list)
		}
	}
	if log := c.must(t, "logs", "control-plane"); !strings.Contains(log, "API server is ready") {
		t.Error("the control plane's log doesn't say that it is ready")
	}
	c.mustFail(t, "no log of", "logs", "nonsense")
}

func loadImage(t *testing.T, c *cluster) {
	const reference = "localhost/loaded:1"
	archive := filepath.Join(c.base, "loaded.tar")
	c.must(t, "build-image", "--binary="+cached(t, "pause"), "--reference="+reference, "--output="+archive)
	c.must(t, "load-image", archive)
	c.must(t, "kubectl", "run", "loaded", "--image="+reference, "--image-pull-policy=Never")
	c.must(t, "kubectl", "wait", "pod/loaded", "--for=condition=Ready", "--timeout=60s")
	c.must(t, "kubectl", "delete", "pod/loaded", "--wait=false")
	c.mustFail(t, "no such file", "load-image", archive+".none")
}

// cached is the path of a component in the cache.
func cached(t *testing.T, name string) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(user, "localcluster", name+"-????????????????"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in the cache (%v)", name, err)
	}
	return paths[0]
}

func restrictedPodWrites(t *testing.T, c *cluster) {
	if _, err := c.run(t.Context(), workload, "kubectl", "apply", "--server-side", "--filename=-"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "kubectl", "--namespace=restricted", "wait", "pod/writer", "--for=condition=Ready", "--timeout=90s")
	eventually(t, "the file is written", func() error {
		owner, err := c.run(t.Context(), "", "kubectl", "--namespace=restricted", "exec", "writer", "--", "stat", "-c", "%u:%g", "/data/written")
		if err == nil && owner != "999:999" {
			err = fmt.Errorf("its owner is %s", owner)
		}
		return err
	})
}

func podIsReplaced(t *testing.T, c *cluster) {
	kubectl := func(args ...string) string {
		return c.must(t, "kubectl", append([]string{"--namespace=restricted"}, args...)...)
	}
	kubectl("rollout", "status", "deployment/cache", "--timeout=90s")
	before := kubectl("get", "pods", "--selector=app=cache", "-o=name")
	kubectl("delete", before)
	kubectl("rollout", "status", "deployment/cache", "--timeout=90s")
	if after := kubectl("get", "pods", "--selector=app=cache", "-o=name"); after == before || !strings.HasPrefix(after, "pod/cache-") {
		t.Errorf("pod is %q, and was %q", after, before)
	}
}

func serviceIsReached(t *testing.T, c *cluster) {
	eventually(t, "the Service answers", func() error {
		answer, err := c.run(t.Context(), "", "kubectl", "--namespace=restricted", "exec", "writer", "--", "redis-cli", "-t", "2", "-h", "cache", "ping")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("it says %q", answer)
		}
		return err
	})
}

func dataAreThere(t *testing.T, c *cluster) {
	if answer := c.must(t, "kubectl", "--namespace=restricted", "get", "configmap", "kept", "-o=jsonpath={.data.answer}"); answer != "42" {
		t.Errorf("the ConfigMap has %q", answer)
	}
	eventually(t, "the volume is there", func() error {
		content, err := c.run(t.Context(), "", "kubectl", "--namespace=restricted", "exec", "writer", "--", "cat", "/data/written")
		if err == nil && content != "by the first" {
			err = errors.New("its file says " + content)
		}
		return err
	})
	serviceIsReached(t, c)
}
