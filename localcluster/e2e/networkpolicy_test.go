// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed testdata/networkpolicy.yaml
var participants string

// effectWithin is for a loaded machine; on an idle one a policy takes effect in a tenth of a second.
const effectWithin = 10 * time.Second

// admitsTwo lets a server be reached from its own namespace, and by the pods of an operator in another one.
const admitsTwo = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: admits-two, namespace: databases}
spec:
  podSelector: {matchLabels: {app: server}}
  ingress:
  - from:
    - podSelector: {}
    - namespaceSelector: {matchLabels: {role: operators}}
      podSelector: {matchLabels: {app: operator}}
    ports: [{port: 6379}]
`

// lateServer starts while there are policies.
const lateServer = `
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: databases, labels: {app: server}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: redis
    image: redis:8.0
    args: [redis-server, --save, "", --protected-mode, "no"]
    ports: [{name: late, containerPort: 6379}]
    readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 1}
`

// TestNetworkPolicies has pods of three namespaces ask a server, before, while and after policies say who may.
func TestNetworkPolicies(t *testing.T) {
	c := newCluster(t)
	c.timed(t, "up")
	c.apply(t, participants)
	for _, namespace := range []string{"databases", "operators", "strangers"} {
		c.must(t, "kubectl", "--namespace="+namespace, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=90s")
	}
	p := &asking{cluster: c, server: "server.databases"}
	for _, pod := range everyone() {
		p.takesEffect(t, "without a policy "+pod+" is answered", pod, answered)
	}
	p.connected(t, "strangers/stranger")

	c.apply(t, admitsTwo)
	p.takesEffect(t, "the third namespace is refused", "strangers/stranger", refused)
	p.now(t, "operators/other", refused)
	p.now(t, "databases/client", answered)
	p.now(t, "operators/operator", answered)
	p.stillConnected(t, "strangers/stranger")
	p.newPodIsIsolated(t)
	// Its readiness is probed from the node each second, and it is asked by the Service, which has ready pods only.
	p.now(t, "databases/client", answered)

	c.must(t, "kubectl", "--namespace=databases", "delete", "networkpolicy", "admits-two")
	p.takesEffect(t, "without the policy the third namespace is answered", "strangers/stranger", answered)
	p.egress(t)
}

func everyone() []string {
	return []string{"databases/client", "operators/operator", "operators/other", "strangers/stranger"}
}

// asking has pods ask a server.
type asking struct {
	*cluster
	server string
}

const (
	answered = true
	refused  = false
)

// asks tells whether the pod, as NAMESPACE/NAME, is answered; what isn't said in time was dropped on the way.
func (a *asking) asks(t *testing.T, pod string) (bool, error) {
	namespace, name, _ := strings.Cut(pod, "/")
	answer, err := a.run(t.Context(), "", "kubectl", "--namespace="+namespace, "exec", name, "--", "redis-cli", "-t", "1", "-h", a.server, "ping")
	if err != nil && strings.Contains(err.Error(), "Connection timed out") {
		return refused, nil
	}
	if err == nil && answer != "PONG" {
		err = fmt.Errorf("the server says %q", answer)
	}
	return answered, err
}

func (a *asking) now(t *testing.T, pod string, want bool) {
	t.Helper()
	got, err := a.asks(t, pod)
	if err != nil {
		t.Fatalf("%s asks: %v", pod, err)
	}
	if got != want {
		t.Errorf("%s asks %s: answered is %t, not %t", pod, a.server, got, want)
	}
}

func (a *asking) takesEffect(t *testing.T, what, pod string, want bool) {
	t.Helper()
	start := time.Now()
	eventually(t, what, func() error {
		if elapsed := time.Since(start); elapsed > effectWithin {
			t.Fatalf("%s: not within %s", what, effectWithin)
		}
		got, err := a.asks(t, pod)
		if err == nil && got != want {
			err = fmt.Errorf("answered is %t", got)
		}
		return err
	})
	t.Logf("%s after %s", what, time.Since(start).Round(10*time.Millisecond))
}

// connected has a pod count on the server from now on, by one connection.
func (a *asking) connected(t *testing.T, pod string) {
	t.Helper()
	namespace, name, _ := strings.Cut(pod, "/")
	a.must(t, "kubectl", "--namespace="+namespace, "exec", name, "--",
		"sh", "-c", "redis-cli -h "+a.server+" -r -1 -i 0.1 incr "+name+" >/tmp/counted 2>&1 &")
	a.stillConnected(t, pod)
}

func (a *asking) stillConnected(t *testing.T, pod string) {
	t.Helper()
	_, name, _ := strings.Cut(pod, "/")
	count := func() string {
		return a.must(t, "kubectl", "--namespace=databases", "exec", "client", "--", "redis-cli", "-h", a.server, "get", name)
	}
	before := count()
	eventually(t, "the connection that was there goes on", func() error {
		if now := count(); now == before {
			return errors.New("it still counts " + now)
		}
		return nil
	})
}

// newPodIsIsolated has the stranger try the addresses of which the new pod is given one, from before it has it. A
// connection that is refused has reached the pod too.
func (a *asking) newPodIsIsolated(t *testing.T) {
	t.Helper()
	// Four at once: a try takes a quarter of a second, and the pod is unknown for less than that.
	const loop = `for i in 1 2 3 4; do (until test -e /tmp/enough; do echo "%[1]s $(redis-cli -t 0.1 -h %[1]s ping 2>&1)" >>/tmp/tried; done) >/dev/null 2>&1 & done; `
	next := a.nextAddresses(t)
	var loops strings.Builder
	for _, address := range next {
		fmt.Fprintf(&loops, loop, address)
	}
	a.must(t, "kubectl", "--namespace=strangers", "exec", "stranger", "--", "sh", "-c", loops.String())
	a.apply(t, lateServer)
	a.must(t, "kubectl", "--namespace=databases", "wait", "pod/late", "--for=condition=Ready", "--timeout=90s")
	late := &asking{cluster: a.cluster, server: a.addressOf(t, "late")}
	if !slices.Contains(next, late.server) {
		t.Fatalf("the new pod has the address %s, none of %v", late.server, next)
	}
	late.takesEffect(t, "the new pod answers whom it may", "databases/client", answered)
	late.now(t, "strangers/stranger", refused)
	tried := a.must(t, "kubectl", "--namespace=strangers", "exec", "stranger", "--", "cat", "/tmp/tried")
	if !strings.Contains(tried, late.server+" ") || strings.Contains(tried, "PONG") || strings.Contains(tried, "refused") {
		t.Errorf("the new pod was to be tried at %s, and never to be reached:\n%s", late.server, tried)
	}
	a.must(t, "kubectl", "--namespace=strangers", "exec", "stranger", "--", "touch", "/tmp/enough")
}

// nextAddresses are those that pods get next: they are given in order.
func (a *asking) nextAddresses(t *testing.T) []string {
	t.Helper()
	var last netip.Addr
	for text := range strings.FieldsSeq(a.must(t, "kubectl", "get", "pods", "--all-namespaces", "-o=jsonpath={.items[*].status.podIP}")) {
		if address := netip.MustParseAddr(text); last.Less(address) {
			last = address
		}
	}
	var next []string
	for range 2 {
		last = last.Next()
		next = append(next, last.String())
	}
	return next
}

func (a *asking) addressOf(t *testing.T, pod string) string {
	t.Helper()
	return a.must(t, "kubectl", "--namespace=databases", "get", "pod", pod, "-o=jsonpath={.status.podIP}")
}

// egress restricts whom a pod may ask: by the name of the server's port, and then by its address.
func (a *asking) egress(t *testing.T) {
	t.Helper()
	const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: asks-some, namespace: strangers}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress: [%s]
`
	server := &asking{cluster: a.cluster, server: a.addressOf(t, "server")}
	late := &asking{cluster: a.cluster, server: a.addressOf(t, "late")}
	const stranger = "strangers/stranger"
	a.apply(t, fmt.Sprintf(policy, `{to: [{namespaceSelector: {}}], ports: [{port: redis}]}`))
	late.takesEffect(t, "a port of another name is out of reach", stranger, refused)
	server.now(t, stranger, answered)
	a.apply(t, fmt.Sprintf(policy, `{to: [{ipBlock: {cidr: 10.244.0.0/16, except: [`+server.server+`/32]}}]}`))
	server.takesEffect(t, "an address that is excepted is out of reach", stranger, refused)
	late.now(t, stranger, answered)
	late.now(t, "databases/client", answered)
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := c.run(t.Context(), manifest, "kubectl", "apply", "--server-side", "--filename=-"); err != nil {
		t.Fatal(err)
	}
}

// TestRulesAreWhatNFTReads has the node's nft read what the unit tests expect of the rules: of policies and of isolation.
func TestRulesAreWhatNFTReads(t *testing.T) {
	files, err := filepath.Glob("../internal/*/testdata/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rules, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rules.Close() }()
			command := exec.CommandContext(t.Context(), "/usr/sbin/nft", "--file=-")
			command.SysProcAttr = &syscall.SysProcAttr{Chroot: nodeRoot(t), Cloneflags: syscall.CLONE_NEWNET}
			command.Dir, command.Stdin = "/", rules
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}
