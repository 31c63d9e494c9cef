// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func here() Node { return Node{Name: "node-1", PodCIDR: "10.244.0.0/24"} }

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// pod is a running pod here, called NAMESPACE/NAME, whose label app is its name.
func pod(name, ip string, change ...func(*corev1.Pod)) *corev1.Pod {
	space, name, _ := strings.Cut(name, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.NodeName = here().Name
	p.Status.Phase = corev1.PodRunning
	if ip != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func port(name string, number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}}})
	}
}

func elsewhere(p *corev1.Pod) { p.Spec.NodeName = "node-2" }

func policy(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	space, name, _ := strings.Cut(name, "/")
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.PolicyTypes) == 0 { // what the API server fills in
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if p.Spec.Egress != nil {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	return p
}

// shop is a cluster in which the policies are about shop/db.
func shop(t *testing.T, policies ...string) Snapshot {
	t.Helper()
	s := Snapshot{
		Namespaces: []*corev1.Namespace{namespace("shop", map[string]string{"team": "shop"}), namespace("ops", map[string]string{"team": "ops"}), namespace("other", nil)},
		Pods: []*corev1.Pod{
			pod("shop/db", "10.244.0.3", port("sql", 3306)), pod("shop/web", "10.244.0.4", port("http", 8080)),
			pod("ops/operator", "10.244.0.5"), pod("other/web", "10.244.1.6", elsewhere, port("http", 80)),
		},
	}
	for i, spec := range policies {
		s.Policies = append(s.Policies, policy(t, fmt.Sprintf("shop/p%d", i), spec))
	}
	return s
}

// chain are the lines of a chain but for the first, by which a pod reaches itself, and comments; none means that the
// chain isn't there.
func chain(t *testing.T, rules, name string) []string {
	t.Helper()
	_, after, found := strings.Cut(rules, "\tchain "+name+" {")
	if !found {
		return nil
	}
	content, _, _ := strings.Cut(after, "\t}\n")
	var lines []string
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		lines = append(lines, line)
	}
	return lines[1:]
}

// The chains of shop/db.
const in, out = "to-10.244.0.3", "from-10.244.0.3"

// admission is what a chain of shop/db admits under policies of its namespace.
type admission struct {
	chain    string
	policies []string
	want     []string
}

func mustAdmit(t *testing.T, rows map[string]admission) {
	t.Helper()
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			rules := shop(t, row.policies...).Rules(here())
			if got := chain(t, rules, row.chain); !slices.Equal(got, row.want) {
				t.Errorf("%s has\n\t%s\nand not\n\t%s\nin\n%s", row.chain, strings.Join(got, "\n\t"), strings.Join(row.want, "\n\t"), rules)
			}
		})
	}
}

func TestWhomAPolicyAdmits(t *testing.T) {
	mustAdmit(t, map[string]admission{
		"without a policy there is no chain":        {in, nil, nil},
		"a policy about other pods is none":         {in, []string{`{podSelector: {matchLabels: {app: web}}}`}, nil},
		"a policy for ingress leaves egress alone":  {out, []string{`{podSelector: {}}`}, nil},
		"no rule admits nobody":                     {in, []string{`{podSelector: {}}`}, []string{"drop"}},
		"a rule without peers and ports admits all": {in, []string{`{podSelector: {}, ingress: [{}]}`}, []string{"accept", "drop"}},
		"pods are of the policy's namespace": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`},
			[]string{"ip saddr { 10.244.0.4 } accept", "drop"},
		},
		"a namespace has all its pods, wherever they run": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`},
			[]string{"ip saddr { 10.244.0.3, 10.244.0.4, 10.244.0.5, 10.244.1.6 } accept", "drop"},
		},
		"pods of some namespaces have both labels": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}, podSelector: {matchLabels: {app: web}}}]}]}`},
			[]string{"ip saddr { 10.244.1.6 } accept", "drop"},
		},
		"peers that don't exist admit nobody": {in, []string{`{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: none}}}]}]}`}, []string{"drop"}},
		"several peers are each admitted": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 192.0.2.7/24}}]}]}`},
			[]string{"ip saddr { 10.244.0.3, 10.244.0.4 } accept", "ip saddr 192.0.2.0/24 accept", "drop"},
		},
		"exceptions may overlap": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 10.1.0.0/16]}}]}]}`},
			[]string{"ip saddr 0.0.0.0/0 ip saddr != 10.0.0.0/8 ip saddr != 10.1.0.0/16 accept", "drop"},
		},
		"a range of IPv6 admits nobody": {in, []string{`{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: "2001:db8::/32"}}]}]}`}, []string{"drop"}},
	})
}

func TestWhichPortsAPolicyAdmits(t *testing.T) {
	mustAdmit(t, map[string]admission{
		"ports are numbers, ranges, names of the pod's, or all of a protocol": {
			in,
			[]string{`{podSelector: {}, ingress: [{ports: [{port: 22}, {port: 100, endPort: 200}, {port: sql}, {protocol: UDP}, {port: 53, protocol: UDP}]}]}`},
			[]string{"tcp dport 22 accept", "tcp dport 100-200 accept", "tcp dport 3306 accept", "meta l4proto udp accept", "udp dport 53 accept", "drop"},
		},
		"a name that the pod hasn't got admits nobody": {in, []string{`{podSelector: {}, ingress: [{ports: [{port: http}]}]}`}, []string{"drop"}},
		"each peer may use each port": {
			in,
			[]string{`{podSelector: {}, ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 1}, {port: 2}]}]}`},
			[]string{"ip saddr { 10.244.0.3, 10.244.0.4 } tcp dport 1 accept", "ip saddr 192.0.2.0/24 tcp dport 1 accept", "ip saddr { 10.244.0.3, 10.244.0.4 } tcp dport 2 accept", "ip saddr 192.0.2.0/24 tcp dport 2 accept", "drop"},
		},
		"policies add up": {
			in,
			[]string{`{podSelector: {}, ingress: [{ports: [{port: 1}]}]}`, `{podSelector: {matchLabels: {app: db}}, ingress: [{ports: [{port: 2}]}]}`},
			[]string{"tcp dport 1 accept", "tcp dport 2 accept", "drop"},
		},
		"egress goes on to the other side's ingress": {
			out,
			[]string{`{podSelector: {}, egress: [{to: [{podSelector: {}}], ports: [{port: 53, protocol: UDP}]}]}`},
			[]string{"ip daddr { 10.244.0.3, 10.244.0.4 } udp dport 53 return", "drop"},
		},
		"egress to a name is to each pod's own port": {
			out,
			[]string{`{podSelector: {}, egress: [{ports: [{port: http}]}]}`},
			[]string{"ip daddr { 10.244.1.6 } tcp dport 80 return", "ip daddr { 10.244.0.4 } tcp dport 8080 return", "drop"},
		},
		"egress to a name is to those peers that have it": {
			out,
			[]string{`{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.1.0/24]}}], ports: [{port: http}]}]}`},
			[]string{"ip daddr { 10.244.0.4 } tcp dport 8080 return", "drop"},
		},
	})
}

func TestWhichAddressesCount(t *testing.T) {
	const isolated, unknown = "10.244.0.9 : goto", "!= { 10.244.0.3, 10.244.0.4, 10.244.0.5 }"
	for sentence, row := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a pod that runs is isolated":                  {pod("shop/new", "10.244.0.9"), isolated},
		"a pod without an address isn't known":         {pod("shop/new", ""), unknown},
		"a pod that has ended has no address any more": {pod("shop/new", "10.244.0.9", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), unknown},
		"a pod in the node's network is the node":      {pod("shop/new", "10.244.0.9", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), unknown},
		"a pod elsewhere is isolated there":            {pod("shop/new", "10.244.1.9", elsewhere), unknown},
		"an address that was given again is the newer pod's": {
			pod("other/new", "10.244.0.3", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }), "vmap { 10.244.0.4 : goto",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			snapshot := shop(t, `{podSelector: {}}`)
			snapshot.Pods = append(snapshot.Pods, row.pod)
			if rules := snapshot.Rules(here()); !strings.Contains(rules, row.want) {
				t.Errorf("there is no %q in\n%s", row.want, rules)
			}
		})
	}
}

func TestRulesAreTheSameInWhateverOrderObjectsCome(t *testing.T) {
	snapshot := shop(t, `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`, `{podSelector: {}, egress: [{}]}`, `{podSelector: {}}`)
	want := snapshot.Rules(here())
	for range 20 {
		rand.Shuffle(len(snapshot.Pods), func(i, j int) { snapshot.Pods[i], snapshot.Pods[j] = snapshot.Pods[j], snapshot.Pods[i] })
		rand.Shuffle(len(snapshot.Policies), func(i, j int) {
			snapshot.Policies[i], snapshot.Policies[j] = snapshot.Policies[j], snapshot.Policies[i]
		})
		if got := snapshot.Rules(here()); got != want {
			t.Fatalf("rules are\n%s\nand were\n%s", got, want)
		}
	}
}

// The end-to-end tests have nft read these files.
func TestGoldenRules(t *testing.T) {
	empty := shop(t, `{podSelector: {}, policyTypes: [Ingress, Egress]}`)
	empty.Pods = nil
	for file, got := range map[string]string{
		"closed.nft": closed(here().PodCIDR),
		"none.nft":   shop(t).Rules(here()),
		"empty.nft":  empty.Rules(here()),
		"shop.nft": shop(t,
			`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {team: ops}}, podSelector: {matchLabels: {app: operator}}}], ports: [{port: sql}]}]}`,
			`{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 10.1.0.0/16]}}], ports: [{port: 100, endPort: 200}, {port: 150}, {protocol: SCTP}]}], egress: [{ports: [{port: http}, {port: 53, protocol: UDP}]}, {to: [{namespaceSelector: {}}]}]}`,
		).Rules(here()),
	} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (write it anew with -update); got\n%s", path, got)
		}
	}
}
