// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"testing"
)

const nodes = MaxNodes

func TestAddressesAreUniqueAndInOneNetwork(t *testing.T) {
	addresses := []net.IP{BridgeIP(), ControlPlaneIP()}
	for index := range nodes {
		addresses = append(addresses, NodeIP(index))
	}
	seen := map[string]bool{}
	for _, ip := range addresses {
		if seen[ip.String()] {
			t.Errorf("%s is given twice", ip)
		}
		seen[ip.String()] = true
		hardware := hardwareAddress(ip)
		if seen[hardware.String()] || len(hardware) != 6 || hardware[0]&3 != 2 {
			t.Errorf("%s has the hardware address %s, which isn't its own and locally administered", ip, hardware)
		}
		seen[hardware.String()] = true
		if !address(BridgeIP()).Contains(ip) {
			t.Errorf("%s isn't in the bridge's network", ip)
		}
	}
}

func TestPodRangesArePartsOfTheClustersAndDisjoint(t *testing.T) {
	_, cluster, err := net.ParseCIDR(ClusterCIDR)
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Contains(BridgeIP()) {
		t.Error("the pods' range holds the nodes' addresses")
	}
	var before []*net.IPNet
	for index := range nodes {
		_, pods, err := net.ParseCIDR(PodCIDR(index))
		if err != nil {
			t.Fatal(err)
		}
		if !cluster.Contains(pods.IP) {
			t.Errorf("%s isn't in %s", pods, cluster)
		}
		for _, other := range before {
			if other.Contains(pods.IP) || pods.Contains(other.IP) {
				t.Errorf("%s and %s overlap", pods, other)
			}
		}
		before = append(before, pods)
	}
}

func TestANodeIsRoutedToTheOthers(t *testing.T) {
	for index := range MaxNodes {
		ways := map[string]bool{}
		for _, route := range PodRoutes(index) {
			ways[route.CIDR+" "+route.Via.String()] = true
		}
		for other := range MaxNodes {
			if way := PodCIDR(other) + " " + NodeIP(other).String(); ways[way] == (other == index) {
				t.Errorf("node %d and %s: %v", index, way, ways)
			}
		}
	}
	if routes := PodRoutes(-1); len(routes) != MaxNodes {
		t.Errorf("who is no node has %v", routes)
	}
}
