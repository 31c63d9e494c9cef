// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// readRule is a rule of which is known whom it admits.
type readRule struct {
	ports []networkingv1.NetworkPolicyPort
	peers peers
}

// matches are what nft compares a packet with, one line for each way in which a rule admits a connection of the
// endpoint. Each is empty or ends with a space.
func (v view) matches(r readRule, own endpoint, d direction) []string {
	if len(r.ports) == 0 {
		return r.peers.matches(d.peer)
	}
	var lines []string
	for _, port := range r.ports {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		if port.Port == nil || port.Port.Type == intstr.Int {
			lines = append(lines, crossed(r.peers.matches(d.peer), numberMatch(protocol, port))...)
			continue
		}
		// A name is the destination's: the pod's own, or that of each pod which it may connect to.
		if d.kind == networkingv1.PolicyTypeIngress {
			for _, number := range numbersOf(own.pod, port.Port.StrVal, protocol) {
				lines = append(lines, crossed(r.peers.matches(d.peer), portMatch(protocol, strconv.Itoa(int(number))))...)
			}
			continue
		}
		lines = append(lines, v.namedMatches(r.peers, port.Port.StrVal, protocol, d)...)
	}
	return lines
}

func crossed(peers []string, port string) []string {
	lines := make([]string, len(peers))
	for i, peer := range peers {
		lines[i] = peer + port
	}
	return lines
}

// numberMatch is for a port, a range of them, or all of the protocol.
func numberMatch(protocol corev1.Protocol, port networkingv1.NetworkPolicyPort) string {
	switch {
	case port.Port == nil:
		return "meta l4proto " + strings.ToLower(string(protocol)) + " "
	case port.EndPort != nil:
		return portMatch(protocol, fmt.Sprintf("%d-%d", port.Port.IntVal, *port.EndPort))
	default:
		return portMatch(protocol, strconv.Itoa(port.Port.IntValue()))
	}
}

func portMatch(protocol corev1.Protocol, ports string) string {
	return strings.ToLower(string(protocol)) + " dport " + ports + " "
}

// numbersOf are the ports of the pod's containers that have the name.
func numbersOf(pod *corev1.Pod, name string, protocol corev1.Protocol) []int32 {
	var numbers []int32
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, port := range container.Ports {
			if port.Name == name && port.Protocol == protocol {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// namedMatches are for those pods among the peers that have a port of the name, by the number that it has there.
func (v view) namedMatches(peers peers, name string, protocol corev1.Protocol, d direction) []string {
	byNumber := map[int32][]netip.Addr{}
	for _, e := range v.endpoints {
		if !peers.contain(e.address) {
			continue
		}
		for _, number := range numbersOf(e.pod, name, protocol) {
			byNumber[number] = append(byNumber[number], e.address)
		}
	}
	var lines []string
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		lines = append(lines, d.peer+" "+set(byNumber[number])+" "+portMatch(protocol, strconv.Itoa(int(number))))
	}
	return lines
}

// peers are whom a rule admits.
type peers struct {
	any bool
	// pods are in order.
	pods   []netip.Addr
	blocks []block
}

// block is a range of addresses without some within it.
type block struct {
	within netip.Prefix
	except []netip.Prefix
}

func (v view) peers(namespace string, list []networkingv1.NetworkPolicyPeer) peers {
	found := peers{any: len(list) == 0}
	for _, peer := range list {
		if peer.IPBlock != nil {
			if b, ok := parseBlock(*peer.IPBlock); ok {
				found.blocks = append(found.blocks, b)
			}
			continue
		}
		found.pods = append(found.pods, v.selected(namespace, peer)...)
	}
	slices.SortFunc(found.pods, netip.Addr.Compare)
	found.pods = slices.Compact(found.pods)
	return found
}

// selected are the addresses of the pods that selectors of a policy in that namespace select.
func (v view) selected(namespace string, peer networkingv1.NetworkPolicyPeer) []netip.Addr {
	inNamespace := func(name string) bool { return name == namespace }
	if peer.NamespaceSelector != nil {
		selector := selectorOf(peer.NamespaceSelector)
		inNamespace = func(name string) bool {
			set, known := v.namespaces[name]
			return known && selector.Matches(set)
		}
	}
	selector := labels.Everything()
	if peer.PodSelector != nil {
		selector = selectorOf(peer.PodSelector)
	}
	var found []netip.Addr
	for _, e := range v.endpoints {
		if inNamespace(e.pod.Namespace) && selector.Matches(labels.Set(e.pod.Labels)) {
			found = append(found, e.address)
		}
	}
	return found
}

// parseBlock has nothing for ranges of IPv6, which the cluster hasn't got, and for what can't be read: it admits less
// then, not more.
func parseBlock(given networkingv1.IPBlock) (block, bool) {
	within, err := netip.ParsePrefix(given.CIDR)
	if err != nil || !within.Addr().Is4() {
		return block{}, false
	}
	b := block{within: within.Masked()}
	for _, text := range given.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil || !except.Addr().Is4() {
			return block{}, false
		}
		b.except = append(b.except, except.Masked())
	}
	return b, true
}

func (b block) contains(address netip.Addr) bool {
	return b.within.Contains(address) && !slices.ContainsFunc(b.except, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (p peers) contain(address netip.Addr) bool {
	_, isPod := slices.BinarySearchFunc(p.pods, address, netip.Addr.Compare)
	return p.any || isPod || slices.ContainsFunc(p.blocks, func(b block) bool { return b.contains(address) })
}

// matches are none if nobody is admitted. Ranges are compared one by one: within a set, those of a policy that overlap
// would be an error, which would keep all others from being enforced.
func (p peers) matches(field string) []string {
	if p.any {
		return []string{""}
	}
	var lines []string
	if len(p.pods) > 0 {
		lines = append(lines, field+" "+set(p.pods)+" ")
	}
	for _, b := range p.blocks {
		var line strings.Builder
		fmt.Fprintf(&line, "%s %s ", field, b.within)
		for _, except := range b.except {
			fmt.Fprintf(&line, "%s != %s ", field, except)
		}
		lines = append(lines, line.String())
	}
	return lines
}
