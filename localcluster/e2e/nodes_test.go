// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/nodes.yaml
var spread string

const (
	lostAfter  = 6 * time.Second
	evictAfter = 3 * time.Second
	// noticed allows for a loaded machine.
	noticed = 20 * time.Second
)

// TestSeveralNodes lives through the life of a cluster of two nodes, in one test: each part needs the one before.
func TestSeveralNodes(t *testing.T) {
	c := newCluster(t)
	c.must(t, "build") // what listing the host's packet rules needs is made with it
	host := lookAtHost(t)
	c.mustFail(t, "a cluster has 1 to 3 nodes", "up", "--nodes=4")
	c.mustFail(t, "--nodes is 0", "up", "--nodes=0")
	c.timed(t, "up", "--node-lost-after="+lostAfter.String(), "--evict-after="+evictAfter.String())
	part := func(name string, do func(t *testing.T, c *cluster)) {
		t.Run(name, func(t *testing.T) { do(t, c) })
	}
	part("a larger number adds nodes", nodesAreAdded)
	part("an image is loaded into each", loadImageIntoEach)
	part("a volume is on the node of its pod", volumesAreWithPods)
	part("pods reach each other and Services by name, from every node", everyNodeReachesAll)
	part("policies are enforced on every node", policyOnEveryNode)
	part("an isolated pod is cut off, and rejoins", podIsIsolated)
	part("a pod is cut off from some", podIsIsolatedFromSome)
	host.mustBeAsBefore(t, "while two nodes run")
	part("a node is lost", nodeIsLost)
	part("a node that was lost comes back", nodeComesBack)
	part("a start goes on with a stop that was killed", interruptedStop)

	c.must(t, "node", "stop", "node-2")
	all := c.lookAtProcesses(t)
	all.kill(t)
	c.timed(t, "down")
	c.mustBeGone(t, all)
	host.mustBeAsBefore(t, "after a crash and down")
}

func nodesAreAdded(t *testing.T, c *cluster) {
	before := c.lookAtProcesses(t)
	c.timed(t, "up", "--nodes=2")
	added := c.lookAtProcesses(t)
	if added.root != before.root || len(before.alive()) < len(before.handles) || len(added.handles) <= len(before.handles) {
		t.Errorf("of %d processes %d live, now there are %d; the first was %d, and is %d", len(before.handles), len(before.alive()), len(added.handles), before.root, added.root)
	}
	for _, args := range [][]string{{"--nodes=2"}, nil} {
		c.must(t, "up", args...)
		if status := c.must(t, "status"); !strings.Contains(status, "node node-1  ready") || !strings.Contains(status, "node node-2  ready") {
			t.Errorf("status is\n%s", status)
		}
	}
	if len(added.alive()) < len(added.handles) {
		t.Error("a second up changed something")
	}
	c.mustFail(t, "localcluster node stop --name "+c.name+" node-2", "up", "--nodes=1")
}

func loadImageIntoEach(t *testing.T, c *cluster) {
	const reference = "localhost/everywhere:1"
	archive := filepath.Join(c.base, "everywhere.tar")
	c.must(t, "build-image", "--binary="+cached(t, "pause"), "--reference="+reference, "--output="+archive)
	c.must(t, "load-image", archive)
	c.must(t, "kubectl", "create", "namespace", "loaded")
	for _, node := range []string{"node-1", "node-2"} {
		c.must(t, "kubectl", "--namespace=loaded", "run", node, "--image="+reference, "--image-pull-policy=Never", `--overrides={"spec":{"nodeName":"`+node+`"}}`)
	}
	c.must(t, "kubectl", "--namespace=loaded", "wait", "pods", "--all", "--for=condition=Ready", "--timeout=60s")
	c.must(t, "kubectl", "delete", "namespace", "loaded", "--wait=false")
}

// inMember runs a command of the shell in a member.
func (c *cluster) inMember(t *testing.T, number int, command string) string {
	t.Helper()
	return c.must(t, "kubectl", "--namespace=spread", "exec", fmt.Sprintf("member-%d", number), "--", "sh", "-c", command)
}

func (c *cluster) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	return c.must(t, "kubectl", "--namespace=spread", "get", "pod", pod, "-o=jsonpath={.spec.nodeName}")
}

func (c *cluster) podAddress(t *testing.T, pod string) string {
	t.Helper()
	return c.must(t, "kubectl", "--namespace=spread", "get", "pod", pod, "-o=jsonpath={.status.podIP}")
}

// clientOn is the name of the client on a node.
func (c *cluster) clientOn(t *testing.T, node string) string {
	t.Helper()
	return c.must(t, "kubectl", "--namespace=spread", "get", "pods", "--selector=app=client", "--field-selector=spec.nodeName="+node, "-o=jsonpath={.items[*].metadata.name}")
}

func volumesAreWithPods(t *testing.T, c *cluster) {
	c.apply(t, spread)
	c.must(t, "kubectl", "--namespace=spread", "rollout", "status", "statefulset/member", "--timeout=90s")
	c.must(t, "kubectl", "--namespace=spread", "rollout", "status", "daemonset/client", "--timeout=90s")
	if first, second := c.nodeOf(t, "member-0"), c.nodeOf(t, "member-1"); first == second {
		t.Fatalf("both members are on %s", first)
	}
	for number := range 2 {
		node := c.nodeOf(t, fmt.Sprintf("member-%d", number))
		c.inMember(t, number, fmt.Sprintf("echo %[1]d >/standard/kept && echo %[1]d >/sized/kept && sync", number))
		for class, below := range map[string]string{"standard": "volumes", "sized": "disks"} {
			volume := c.must(t, "kubectl", "--namespace=spread", "get", fmt.Sprintf("pvc/%s-member-%d", class, number), "-o=jsonpath={.spec.volumeName}")
			affinity := c.must(t, "kubectl", "get", "pv/"+volume, "-o=jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values}")
			if affinity != `["`+node+`"]` {
				t.Errorf("the volume of member-%d, which is on %s, belongs to %s", number, node, affinity)
			}
			places, err := filepath.Glob(filepath.Join(c.stateDir(), below, "*", volume))
			if err != nil || len(places) != 1 || filepath.Base(filepath.Dir(places[0])) != node {
				t.Errorf("the volume of member-%d, which is on %s, is at %v (%v)", number, node, places, err)
			}
		}
	}
}

func everyNodeReachesAll(t *testing.T, c *cluster) {
	for _, node := range []string{"node-1", "node-2"} {
		client := "spread/" + c.clientOn(t, node)
		for _, server := range []string{"member-0.member", "member-1.member", "front"} {
			// A pod that is ready is known to Services and name servers a moment later.
			eventually(t, server+" answers on "+node, func() error { return c.ask(t, question{client, server, answered}) })
		}
	}
}

// question has a pod, as NAMESPACE/NAME, ask a server, and says whether it is to be answered.
type question struct {
	pod, server string
	want        bool
}

func (c *cluster) ask(t *testing.T, q question) error {
	got, err := (&asking{cluster: c, server: q.server}).asks(t, q.pod)
	if err == nil && got != q.want {
		err = fmt.Errorf("answered is %t", got)
	}
	if err != nil {
		return fmt.Errorf("%s asks %s: %w", q.pod, q.server, err)
	}
	return nil
}

// askAll has all ask at once: to be refused takes time.
func (c *cluster) askAll(t *testing.T, questions ...question) error {
	results := make(chan error, len(questions))
	for _, q := range questions {
		go func() { results <- c.ask(t, q) }()
	}
	var err error
	for range questions {
		err = errors.Join(err, <-results)
	}
	return err
}

func (c *cluster) mustAll(t *testing.T, questions ...question) {
	t.Helper()
	if err := c.askAll(t, questions...); err != nil {
		t.Error(err)
	}
}

// policyOnEveryNode has each member admit those who stand beside it under another name, wherever they are.
func policyOnEveryNode(t *testing.T, c *cluster) {
	c.apply(t, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: members-only, namespace: spread}
spec:
  podSelector: {matchLabels: {app: member}}
  ingress: [{from: [{podSelector: {matchLabels: {app: member}}}]}]
`)
	one, two := "spread/"+c.clientOn(t, "node-1"), "spread/"+c.clientOn(t, "node-2")
	eventually(t, "clients are refused, whichever node they and the members are on", func() error {
		return c.askAll(t,
			question{one, "member-0.member", refused}, question{one, "member-1.member", refused},
			question{two, "member-0.member", refused}, question{two, "member-1.member", refused},
			question{"spread/member-0", "member-1.member", answered}, question{"spread/member-1", "member-0.member", answered})
	})
	c.must(t, "kubectl", "--namespace=spread", "delete", "networkpolicy", "members-only")
	eventually(t, "clients are answered again", func() error {
		return c.askAll(t, question{one, "member-0.member", answered}, question{one, "member-1.member", answered})
	})
}

// podIsIsolated cuts off member-1, to which a client has a connection.
func podIsIsolated(t *testing.T, c *cluster) {
	const pod = "spread/member-1"
	first, second := c.podAddress(t, "member-0"), c.podAddress(t, "member-1")
	client := c.clientOn(t, c.nodeOf(t, "member-0"))
	inClient := func(command string) string {
		return c.must(t, "kubectl", "--namespace=spread", "exec", client, "--", "sh", "-c", command)
	}
	// By one connection: it says its number, and what goes wrong.
	inClient("redis-cli -h " + second + " -r -1 -i 0.1 client id >/tmp/said 2>&1 &")
	said := func() int { return len(strings.Fields(inClient("cat /tmp/said"))) }
	goesOn := func(than int) {
		t.Helper()
		eventually(t, "the connection goes on", func() error {
			if now := said(); now <= than {
				return fmt.Errorf("it has said %d words", now)
			}
			return nil
		})
	}
	goesOn(0)
	c.mustFail(t, "NAMESPACE/POD", "isolate", "member-1")
	c.mustFail(t, "not found", "isolate", "spread/nobody")
	c.must(t, "isolate", pod)
	c.must(t, "isolate", pod)
	before := said()
	c.mustAll(t,
		question{"spread/" + client, second, refused}, question{"spread/member-0", second, refused},
		question{pod, first, refused}, question{"spread/" + client, first, answered})
	if after := said(); after != before {
		t.Errorf("the connection went on, from %d to %d", before, after)
	}
	// It hears from nobody, and isn't told so: neither a name server's silence nor a server's is an error.
	if end := c.inMember(t, 1, "redis-cli -t 1 ping && redis-cli -t 1 -h "+second+" ping; timeout 1 redis-cli -t 5 -h front ping; echo $?"); end != "PONG\nPONG\n124" {
		t.Errorf("in the pod: %s", end)
	}
	c.must(t, "rejoin", pod)
	c.must(t, "rejoin", pod)
	goesOn(before)
	c.mustAll(t, question{pod, first, answered})
	if words := inClient("sort -u /tmp/said"); strings.Contains(words, "\n") {
		t.Errorf("it wasn't one connection that went on without an error: %s", words)
	}
}

func podIsIsolatedFromSome(t *testing.T, c *cluster) {
	const pod = "spread/member-1"
	one, two, server := c.clientOn(t, "node-1"), c.clientOn(t, "node-2"), c.podAddress(t, "member-1")
	first, second := c.podAddress(t, one), c.podAddress(t, two)
	c.mustFail(t, "give IPv4 addresses", "isolate", pod, "--from=member-0")
	c.must(t, "isolate", pod, "--from="+first)
	c.mustAll(t, question{"spread/" + one, server, refused}, question{"spread/" + two, server, answered})
	c.must(t, "isolate", pod, "--from="+second+","+first)
	c.mustAll(t, question{"spread/" + one, server, refused}, question{"spread/" + two, server, refused}, question{"spread/member-0", server, answered})
	c.must(t, "rejoin", pod, "--from="+first)
	c.must(t, "rejoin", pod, "--from="+first)
	c.mustAll(t, question{"spread/" + one, server, answered}, question{"spread/" + two, server, refused})
	c.must(t, "isolate", pod)
	c.mustFail(t, "isolated from everybody", "rejoin", pod, "--from="+second)

	c.must(t, "kubectl", "--namespace=spread", "delete", "pod", "member-1")
	c.must(t, "kubectl", "--namespace=spread", "rollout", "status", "statefulset/member", "--timeout=90s")
	again := c.podAddress(t, "member-1")
	eventually(t, "the pod that came after it isn't isolated", func() error {
		return c.askAll(t, question{"spread/" + one, again, answered}, question{"spread/" + two, again, answered})
	})
}

// nodeIsLost stops the node of member-1, and looks at what Kubernetes does about it.
func nodeIsLost(t *testing.T, c *cluster) {
	lost := c.nodeOf(t, "member-1")
	left := c.clientOn(t, c.nodeOf(t, "member-0"))
	gone := &asking{cluster: c, server: c.podAddress(t, "member-1")}
	processes := c.lookAtProcesses(t)
	c.mustFail(t, "its nodes are node-1, node-2", "node", "stop", "node-3")
	start := time.Now()
	c.timed(t, "node", "stop", lost)
	if ended := len(processes.handles) - len(processes.alive()); ended < 8 {
		t.Errorf("%d processes ended", ended)
	}
	gone.isUnreachable(t, "spread/"+left)
	c.must(t, "node", "stop", lost)
	for _, path := range c.cgroups(t) {
		if groups, err := filepath.Glob(filepath.Join(path, lost)); err != nil || len(groups) > 0 {
			t.Errorf("%v are left (%v)", groups, err)
		}
	}
	if status := c.must(t, "status"); !strings.Contains(status, "node "+lost+"  stopped") {
		t.Errorf("status is\n%s", status)
	}
	c.mustFail(t, "is stopped", "load-image", filepath.Join(c.base, "everywhere.tar"))
	c.mustFail(t, "is stopped", "up", "--nodes=3")
	c.mustFail(t, "is stopped", "isolate", "spread/member-1")
	wait := func(limit time.Duration, object, condition string) {
		t.Helper()
		c.must(t, "kubectl", "--namespace=spread", "wait", object, "--for="+condition, "--timeout="+limit.String())
		t.Logf("%s: %s after %s", object, condition, time.Since(start).Round(100*time.Millisecond))
	}
	wait(lostAfter+noticed, "node/"+lost, "condition=Ready=Unknown")
	// Not a condition: of a pod that is deleted meanwhile kubectl takes none that is older than that.
	wait(noticed, "pod/member-1", `jsonpath={.status.conditions[?(@.type=="Ready")].status}=False`)
	wait(evictAfter+noticed, "pod/member-1", "jsonpath={.metadata.deletionTimestamp}")
	// One of two servers, and of two name servers, is gone.
	c.mustAll(t, slices.Repeat([]question{{"spread/" + left, "front", answered}}, 8)...)
}

// isUnreachable allows for both ends of a try: nobody answers, or the node finds that out before.
func (a *asking) isUnreachable(t *testing.T, pod string) {
	t.Helper()
	namespace, name, _ := strings.Cut(pod, "/")
	answer, err := a.run(t.Context(), "", "kubectl", "--namespace="+namespace, "exec", name, "--", "redis-cli", "-t", "2", "-h", a.server, "ping")
	if err == nil || !strings.Contains(err.Error(), "timed out") && !strings.Contains(err.Error(), "No route to host") {
		t.Errorf("%s says %q (%v)", a.server, answer, err)
	}
}

func nodeComesBack(t *testing.T, c *cluster) {
	lost := c.nodeOf(t, "member-1")
	// What was stopped stays so, whatever happens to the control plane.
	c.must(t, "restart", "--kill")
	if status := c.must(t, "status"); !strings.Contains(status, "node "+lost+"  stopped") {
		t.Errorf("status is\n%s", status)
	}
	c.timed(t, "node", "start", lost)
	c.must(t, "node", "start", lost)
	if status := c.must(t, "status"); !strings.Contains(status, "node "+lost+"  ready") {
		t.Errorf("status is\n%s", status)
	}
	eventually(t, "its member is back, with its volumes", func() error {
		content, err := c.run(t.Context(), "", "kubectl", "--namespace=spread", "exec", "member-1", "--", "cat", "/standard/kept", "/sized/kept")
		if err == nil && content != "1\n1" {
			err = errors.New("its files say " + content)
		}
		return err
	})
	c.must(t, "kubectl", "--namespace=spread", "rollout", "status", "statefulset/member", "--timeout=90s")
	c.must(t, "kubectl", "--namespace=spread", "rollout", "status", "daemonset/client", "--timeout=90s")
	everyNodeReachesAll(t, c)
}

// interruptedStop has a node that is to be stopped, and of which nobody was told so.
func interruptedStop(t *testing.T, c *cluster) {
	path := filepath.Join(c.stateDir(), "cluster.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	config["stopped"] = []string{"node-2"}
	if content, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	before := c.lookAtProcesses(t)
	c.timed(t, "node", "start", "node-2")
	if ended := len(before.handles) - len(before.alive()); ended < 8 {
		t.Errorf("%d processes ended", ended)
	}
	if status := c.must(t, "status"); !strings.Contains(status, "node node-2  ready") {
		t.Errorf("status is\n%s", status)
	}
}
