// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func podWith(name, address string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Status: corev1.PodStatus{PodIP: address}}
}

func TestAddressesAreUnique(t *testing.T) {
	addresses := newPodAddresses(nil)
	given := map[string]bool{}
	for pod := range 100_000 {
		address, err := addresses.of(strconv.Itoa(pod))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := addresses.of(strconv.Itoa(pod)); err != nil || again != address {
			t.Fatalf("a pod that has %s is given %s (%v)", address, again, err)
		}
		if given[address] || !podRange.Contains(netip.MustParseAddr(address)) {
			t.Fatalf("%s is given twice, or isn't in %s", address, podRange)
		}
		given[address] = true
	}
}

func TestAddressesOfEarlierPodsAreNotGivenAgain(t *testing.T) {
	addresses := newPodAddresses(fake.NewClientset(
		podWith("first", "240.0.0.1"), podWith("highest", "240.0.1.7"),
		podWith("pending", ""), podWith("of-a-real-node", "10.244.0.9"), podWith("in-a-node's-network", "248.0.0.1"),
	))
	for range 2 { // a second time changes nothing
		if err := addresses.skipUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if address, err := addresses.of("new"); err != nil || address != "240.0.1.8" {
		t.Errorf("the next one is %s (%v)", address, err)
	}
}

func TestTheRangeEnds(t *testing.T) {
	addresses := newPodAddresses(nil)
	addresses.skip("247.255.255.254")
	if address, err := addresses.of("last"); err != nil || address != "247.255.255.255" {
		t.Errorf("the last one is %s (%v)", address, err)
	}
	for range 2 {
		if address, err := addresses.of("one more"); err == nil || !strings.Contains(err.Error(), "240.0.0.0/5") {
			t.Errorf("behind it comes %s (%v)", address, err)
		}
	}
}

func TestPodsInANodesNetworkHaveItsAddress(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fake-1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "fake-1"}, {Type: corev1.NodeInternalIP, Address: "248.0.0.1"},
	}}}
	addresses := newPodAddresses(fake.NewClientset(node))
	ask, ok := addresses.functions()["PodIPsWith"].(func(string, bool, string, string, string) ([]string, error))
	if !ok {
		t.Fatal("the function has another signature than kwok's stages call")
	}
	if got, err := ask("fake-1", true, "", "", ""); err != nil || len(got) != 1 || got[0] != "248.0.0.1" {
		t.Errorf("they have %q (%v)", got, err)
	}
	if got, err := ask("fake-1", false, "uid", "", ""); err != nil || len(got) != 1 || got[0] != "240.0.0.1" {
		t.Errorf("others have %q (%v)", got, err)
	}
}
