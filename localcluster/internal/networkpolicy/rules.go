// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy enforces NetworkPolicies on a node: it turns them into rules for nft, which the kernel applies
// to the first packet of each connection that is routed to or from a pod of the node.
//
//	forward ── of an established connection ──────────────────────────────── accept
//	   │
//	   ├── to or from an address that no known pod of the node has ───────── drop
//	   ├── from a pod that an egress policy selects ── from-ADDRESS ── none ─ drop
//	   │                                                   └── a rule's ──── go on
//	   └── to a pod that an ingress policy selects ──── to-ADDRESS ─── none ─ drop
//	                                                       └── a rule's ──── accept
//
// What the node itself sends to its pods, probes among it, and what pods send to the node isn't routed and passes.
package networkpolicy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// table is the name of everything of ours in the kernel.
const table = "localcluster-network-policy"

// Node is where the rules are for.
type Node struct {
	Name string
	// PodCIDR is the range of the node's pods.
	PodCIDR string
}

// Snapshot is what the API server has.
type Snapshot struct {
	Policies   []*networkingv1.NetworkPolicy
	Namespaces []*corev1.Namespace
	Pods       []*corev1.Pod
}

// direction is one of the two that a policy has rules for.
type direction struct {
	kind networkingv1.PolicyType
	// chain begins the names of the pods' chains.
	chain string
	// own and peer are the fields of a packet that have the pod's address and that of the other side.
	own, peer string
	// enter is how a pod's chain is entered, and admit is what it says to a packet that a rule admits.
	enter, admit string
}

// directions are in the order in which a packet meets them.
func directions() []direction {
	return []direction{
		{networkingv1.PolicyTypeEgress, "from-", "ip saddr", "ip daddr", "jump", "return"},
		{networkingv1.PolicyTypeIngress, "to-", "ip daddr", "ip saddr", "goto", "accept"},
	}
}

// rule admits a connection if a port and a peer match; no ports or no peers mean any.
type rule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

func (d direction) rules(policy *networkingv1.NetworkPolicy) []rule {
	var rules []rule
	if d.kind == networkingv1.PolicyTypeIngress {
		for _, r := range policy.Spec.Ingress {
			rules = append(rules, rule{r.Ports, r.From})
		}
		return rules
	}
	for _, r := range policy.Spec.Egress {
		rules = append(rules, rule{r.Ports, r.To})
	}
	return rules
}

func (d direction) concerns(policy *networkingv1.NetworkPolicy) bool {
	return slices.Contains(policy.Spec.PolicyTypes, d.kind)
}

// Rules are the input for nft that replaces all rules by those of this snapshot, in one step. Without policies there
// are none.
func (s Snapshot) Rules(node Node) string {
	if len(s.Policies) == 0 {
		return replacement("")
	}
	v := newView(s)
	var entries, chains strings.Builder
	for _, d := range directions() {
		if slices.ContainsFunc(s.Policies, d.concerns) {
			fmt.Fprintf(&entries, "\t\t%s %s%s drop\n", d.own, node.PodCIDR, exceptFor(d.own, v.addressesOn(node.Name)))
		}
	}
	for _, d := range directions() {
		var isolated []string
		for _, e := range v.endpoints {
			policies := v.selecting(e.pod, d)
			if e.pod.Spec.NodeName != node.Name || len(policies) == 0 {
				continue
			}
			isolated = append(isolated, fmt.Sprintf("%s : %s %s%s", e.address, d.enter, d.chain, e.address))
			chains.WriteString(v.chain(e, d, policies))
		}
		if len(isolated) > 0 {
			fmt.Fprintf(&entries, "\t\t%s vmap { %s }\n", d.own, strings.Join(isolated, ", "))
		}
	}
	return replacement(forwardChain(entries.String()) + chains.String())
}

// closed are the rules until there is a first snapshot: no new connection to or from a pod.
func closed(podCIDR string) string {
	return replacement(forwardChain(fmt.Sprintf("\t\tip saddr %[1]s drop\n\t\tip daddr %[1]s drop\n", podCIDR)))
}

// replacement removes the table, which may not exist, and makes it with that content, all in one transaction.
func replacement(content string) string {
	text := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\n", table)
	if content != "" {
		text += fmt.Sprintf("table ip %s {\n%s}\n", table, content)
	}
	return text
}

func forwardChain(entries string) string {
	return "\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tct state established,related accept\n" + entries + "\t}\n"
}

func exceptFor(field string, addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return ""
	}
	return " " + field + " != " + set(addresses)
}

// set is a set of addresses for nft; empty it would be an error of syntax.
func set(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// endpoint is a pod with an address of its own.
type endpoint struct {
	address netip.Addr
	pod     *corev1.Pod
}

// view is a snapshot, arranged for questions.
type view struct {
	// policies are by namespace, in the order of their names.
	policies map[string][]readPolicy
	// namespaces are the labels of each.
	namespaces map[string]labels.Set
	// endpoints are in the order of their addresses.
	endpoints []endpoint
}

// readPolicy is a policy of which is known what it selects, and in each direction whom its rules admit.
type readPolicy struct {
	*networkingv1.NetworkPolicy
	selector labels.Selector
	rules    map[networkingv1.PolicyType][]readRule
}

func newView(s Snapshot) view {
	v := view{policies: map[string][]readPolicy{}, namespaces: map[string]labels.Set{}, endpoints: endpoints(s.Pods)}
	for _, namespace := range s.Namespaces {
		v.namespaces[namespace.Name] = namespace.Labels
	}
	for _, policy := range s.Policies {
		read := readPolicy{policy, selectorOf(&policy.Spec.PodSelector), map[networkingv1.PolicyType][]readRule{}}
		for _, d := range directions() {
			for _, r := range d.rules(policy) {
				read.rules[d.kind] = append(read.rules[d.kind], readRule{r.ports, v.peers(policy.Namespace, r.peers)})
			}
		}
		v.policies[policy.Namespace] = append(v.policies[policy.Namespace], read)
	}
	for _, policies := range v.policies {
		slices.SortFunc(policies, func(a, b readPolicy) int { return strings.Compare(a.Name, b.Name) })
	}
	return v
}

// endpoints are the pods that have an address of their own, in the order of these.
func endpoints(pods []*corev1.Pod) []endpoint {
	var found []endpoint
	for _, pod := range pods {
		if address, ok := addressOf(pod); ok {
			found = append(found, endpoint{address, pod})
		}
	}
	// An address that was given again is the newer pod's.
	slices.SortFunc(found, func(a, b endpoint) int {
		return cmp.Or(a.address.Compare(b.address), b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time))
	})
	return slices.CompactFunc(found, func(a, b endpoint) bool { return a.address == b.address })
}

// addressOf is the pod's IPv4 address, unless it has none, or none any more, or only shares that of its node.
func addressOf(pod *corev1.Pod) (netip.Addr, bool) {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return netip.Addr{}, false
	}
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil && address.Is4() {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// addressesOn are those of the pods on a node.
func (v view) addressesOn(node string) []netip.Addr {
	var found []netip.Addr
	for _, e := range v.endpoints {
		if e.pod.Spec.NodeName == node {
			found = append(found, e.address)
		}
	}
	return found
}

// selecting are the policies that isolate the pod in a direction.
func (v view) selecting(pod *corev1.Pod, d direction) []readPolicy {
	var found []readPolicy
	for _, policy := range v.policies[pod.Namespace] {
		if d.concerns(policy.NetworkPolicy) && policy.selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, policy)
		}
	}
	return found
}

// chain admits what any of the policies admits, and what the pod sends to itself, by a Service for instance.
func (v view) chain(e endpoint, d direction, policies []readPolicy) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\tchain %s%s { # %s/%s\n\t\t%s %s %s\n", d.chain, e.address, e.pod.Namespace, e.pod.Name, d.peer, e.address, d.admit)
	for _, policy := range policies {
		fmt.Fprintf(&text, "\t\t# NetworkPolicy %s\n", policy.Name)
		for _, r := range policy.rules[d.kind] {
			for _, match := range v.matches(r, e, d) {
				fmt.Fprintf(&text, "\t\t%s%s\n", match, d.admit)
			}
		}
	}
	text.WriteString("\t\tdrop\n\t}\n")
	return text.String()
}

// selectorOf reads a selector. One that can't be read, which the API server doesn't admit, selects nothing.
func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return read
}
