// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/fake.yaml
var manyPods string

//go:embed testdata/fake-members.yaml
var fakeMembers string

// fakeRange has the addresses of all fake pods, and routes lead nobody there.
var fakeRange = netip.MustParsePrefix("240.0.0.0/5")

// TestFakeNodesOfAnOrdinaryUser lives through the life of a cluster of fake nodes alone, without root.
func TestFakeNodesOfAnOrdinaryUser(t *testing.T) {
	c := newCluster(t)
	c.must(t, "build", "--control-plane-only", "--fake")
	becomeNobody(t, c)
	c.mustFail(t, "--fake is 0", "up", "--control-plane-only", "--fake=0")
	c.mustFail(t, "1000 fake nodes at most", "up", "--control-plane-only", "--fake=1001")
	if elapsed := c.timed(t, "up", "--control-plane-only", "--fake=2"); elapsed > readyWithin {
		t.Errorf("up took %s", elapsed)
	}
	part := func(name string, do func(t *testing.T, c *cluster)) {
		t.Run(name, func(t *testing.T) { do(t, c) })
	}
	part("a hundred pods are ready", manyPodsAreReady)
	part("pods with claims are replaced, and keep them", fakeMembersAreReplaced)
	part("etcd's metrics count what is written", etcdCounts)
	part("kwok listens on nothing", kwokListensOnNothing)
	part("the control plane restarts, and pods stay", fakePodsStay)
	part("kwok that ended is started again", kwokIsStartedAgain)
	part("a larger number adds nodes", fakeNodesAreAdded)

	c.lookAtProcesses(t).kill(t)
	c.timed(t, "up", "--control-plane-only")
	part("fake nodes outlive a crash", fakePodsStay)
	all := c.lookAtProcesses(t)
	if len(all.handles) != 2 {
		t.Errorf("the search for traces is blind: %v", all.handles)
	}
	c.timed(t, "down")
	c.mustBeGone(t, all)
}

// scaleMany waits until all of the Deployment's pods are ready, and each has an address of its own.
func (c *cluster) scaleMany(t *testing.T, replicas int) {
	t.Helper()
	c.must(t, "kubectl", "scale", "deployment/many", "--replicas="+strconv.Itoa(replicas))
	c.must(t, "kubectl", "rollout", "status", "deployment/many", "--timeout=60s")
	var addresses []string
	eventually(t, "each pod has an address of its own", func() error {
		addresses = strings.Fields(c.must(t, "kubectl", "get", "pods", "--selector=app=many", "-o=jsonpath={.items[*].status.podIP}"))
		slices.Sort(addresses)
		if len(addresses) != replicas || len(slices.Compact(slices.Clone(addresses))) != replicas {
			return fmt.Errorf("%d pods have %q", replicas, addresses)
		}
		return nil
	})
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err != nil || !fakeRange.Contains(address) {
			t.Errorf("address %q isn't in %s", text, fakeRange)
		}
	}
}

func manyPodsAreReady(t *testing.T, c *cluster) {
	c.apply(t, manyPods)
	c.scaleMany(t, 100)
	nodes := strings.Fields(c.must(t, "kubectl", "get", "pods", "-o=jsonpath={.items[*].spec.nodeName}"))
	slices.Sort(nodes)
	if used := slices.Compact(nodes); !slices.Equal(used, []string{"fake-1", "fake-2"}) {
		t.Errorf("they are on %q", used)
	}
	if status := c.must(t, "status"); !strings.Contains(status, "fake nodes  2 of 2 ready") {
		t.Errorf("status is\n%s", status)
	}
}

// fakeMembersAreReplaced deletes pods whose names come back at once: none of the new ones may go with the old.
func fakeMembersAreReplaced(t *testing.T, c *cluster) {
	members := func() string {
		c.must(t, "kubectl", "wait", "statefulset/members", "--for=jsonpath={.status.readyReplicas}=20", "--timeout=60s")
		return c.must(t, "kubectl", "get", "pods", "--selector=app=members", "-o=jsonpath={.items[*].metadata.uid}")
	}
	c.apply(t, fakeMembers)
	before := strings.Fields(members())
	c.must(t, "kubectl", "delete", "pods", "--selector=app=members")
	after := members()
	for _, uid := range before {
		if strings.Contains(after, uid) {
			t.Errorf("pod %s is still there", uid)
		}
	}
	if bound := c.must(t, "kubectl", "get", "pvc", "-o=jsonpath={.items[*].status.phase}"); strings.Count(bound, "Bound") != 20 {
		t.Errorf("the claims are %q", bound)
	}
	c.must(t, "kubectl", "delete", "statefulset/members")
}

func etcdCounts(t *testing.T, c *cluster) {
	puts := func() float64 {
		for line := range strings.Lines(c.must(t, "etcd-metrics")) {
			if value, ok := strings.CutPrefix(line, "etcd_mvcc_put_total "); ok {
				number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				if err != nil {
					t.Fatal(err)
				}
				return number
			}
		}
		t.Fatal("etcd_mvcc_put_total isn't among them")
		return 0
	}
	before := puts()
	c.must(t, "kubectl", "create", "configmap", "counted")
	if after := puts(); before <= 0 || after <= before {
		t.Errorf("a write makes of %v %v", before, after)
	}
}

// kwok is the number of the process that plays the fake nodes.
func (p processes) kwok(t *testing.T) int {
	t.Helper()
	for pid := range p.handles {
		if program, err := os.Readlink(procPath(pid, "exe")); err == nil && strings.HasPrefix(filepath.Base(program), "kwok-") {
			return pid
		}
	}
	t.Fatal("there is no kwok")
	return 0
}

func kwokListensOnNothing(t *testing.T, c *cluster) {
	pid := c.lookAtProcesses(t).kwok(t)
	descriptors, err := filepath.Glob(procPath(pid, "fd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	sockets := map[string]bool{}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}
	if len(sockets) == 0 {
		t.Error("the search for sockets is blind")
	}
	const listening, state, inode = "0A", 3, 9
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(procPath(pid, "net", table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) > inode && fields[state] == listening && sockets[fields[inode]] {
				t.Errorf("it listens: %s", line)
			}
		}
	}
}

func fakePodsStay(t *testing.T, c *cluster) {
	uids := func() string {
		return c.must(t, "kubectl", "get", "pods", "--selector=app=many", "--sort-by=.metadata.name", "-o=jsonpath={.items[*].metadata.uid} {.items[*].status.podIP}")
	}
	c.scaleMany(t, 50)
	before := uids()
	c.timed(t, "restart")
	c.timed(t, "restart", "--kill")
	if after := uids(); after != before {
		t.Errorf("the pods were\n%s\nand are\n%s", before, after)
	}
	// What is new has addresses that nobody has.
	c.scaleMany(t, 100)
}

func kwokIsStartedAgain(t *testing.T, c *cluster) {
	before := c.lookAtProcesses(t)
	before.killProgram(t, "/kwok.kubeconfig")
	eventually(t, "another is there", func() error {
		for pid := range c.lookAtProcesses(t).handles {
			if _, ok := before.handles[pid]; !ok {
				return nil
			}
		}
		return errors.New("it isn't")
	})
	c.scaleMany(t, 110)
}

func fakeNodesAreAdded(t *testing.T, c *cluster) {
	c.timed(t, "up", "--control-plane-only", "--fake=3")
	if status := c.must(t, "status"); !strings.Contains(status, "fake nodes  3 of 3 ready") {
		t.Errorf("status is\n%s", status)
	}
	c.mustFail(t, "has 3 fake nodes, and they aren't removed", "up", "--control-plane-only", "--fake=1")
}

// fakeNodesTakeWhoAsks shows that pods of a cluster with a real node are on that, but for those that ask for a fake one.
func fakeNodesTakeWhoAsks(t *testing.T, c *cluster) {
	c.apply(t, manyPods)
	c.scaleMany(t, 100)
	status := c.must(t, "status")
	if !strings.Contains(status, "node node-1  ready") || !strings.Contains(status, "fake nodes   1 of 1 ready") {
		t.Errorf("status is\n%s", status)
	}
	others := c.must(t, "kubectl", "get", "pods", "--all-namespaces", "--selector=app!=many", "-o=jsonpath={.items[*].spec.nodeName}")
	if others == "" || strings.Contains(others, "fake") {
		t.Errorf("other pods are on %q", others)
	}
	c.must(t, "kubectl", "delete", "deployment/many", "--cascade=foreground")
	if metrics := c.must(t, "etcd-metrics"); !strings.Contains(metrics, "\netcd_mvcc_put_total ") {
		t.Errorf("etcd's metrics are %d bytes, and have no number of writes", len(metrics))
	}
}
