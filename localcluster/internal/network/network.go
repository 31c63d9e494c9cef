// SPDX-License-Identifier: Apache-2.0

// Package network joins network namespaces by a bridge that stands in a namespace of its own. Addresses are the same
// in every cluster: no cluster, and no host, sees another's.
package network

import (
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	bridgeName = "cluster"
	// InterfaceName is the name of a member's interface in its own namespace.
	InterfaceName = "eth0"
	prefixLength  = 24
)

// BridgeIP is the bridge's own address.
func BridgeIP() net.IP { return net.IPv4(172, 31, 255, 1) }

// RegistryAddress is where nodes pull images from, on the bridge.
func RegistryAddress() string { return net.JoinHostPort(BridgeIP().String(), "5000") }

// ControlPlaneIP is the API server's address for nodes and pods.
func ControlPlaneIP() net.IP { return net.IPv4(172, 31, 255, 2) }

// NodeIP is the address of the node with that index, counted from 0.
func NodeIP(index int) net.IP { return net.IPv4(172, 31, 255, byte(11+index)) }

// PodCIDR is the range of the pods on the node with that index.
func PodCIDR(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) }

// ClusterCIDR holds every PodCIDR.
const ClusterCIDR = "10.244.0.0/16"

// MaxNodes is how many nodes a cluster has at most.
const MaxNodes = 3

// PodRoutes are the ways to the pods of all nodes but the one with that index, also to those of nodes that don't run:
// one that joins later, or again, is reached without a change elsewhere. An index of -1 stands for no node.
func PodRoutes(own int) []Route {
	var routes []Route
	for index := range MaxNodes {
		if index != own {
			routes = append(routes, Route{CIDR: PodCIDR(index), Via: NodeIP(index)})
		}
	}
	return routes
}

// Route sends a range through an address.
type Route struct {
	CIDR string
	Via  net.IP
}

// CreateBridge makes the bridge in this process's own namespace, and brings loopback up.
func CreateBridge() error {
	if err := loopbackUp(&netlink.Handle{}); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make bridge: %w", err)
	}
	if err := netlink.AddrAdd(bridge, address(BridgeIP())); err != nil {
		return fmt.Errorf("make bridge: %w", err)
	}
	return netlink.LinkSetUp(bridge)
}

// Join connects the namespace of the process pid to the bridge, under an address, with routes. A process that takes the
// place of one that has ended is reached at once: its hardware address is the same, which others remember.
func Join(pid int, name string, ip net.IP, routes []Route) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge: %w", err)
	}
	// The kernel removes an ended namespace's interfaces in its own time; one that is gone already is none to remove.
	if left, err := netlink.LinkByName(name); err == nil {
		_ = netlink.LinkDel(left) // what can't be removed is in the way below
	}
	link := netlink.LinkAttrs{Name: name, MasterIndex: bridge.Attrs().Index}
	veth := &netlink.Veth{
		LinkAttrs: link, PeerName: InterfaceName, PeerNamespace: netlink.NsPid(pid), PeerHardwareAddr: hardwareAddress(ip),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make interface %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return configure(pid, ip, routes)
}

func configure(pid int, ip net.IP, routes []Route) error {
	// A handle is made by entering the namespace for a moment, which concerns the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("find the network namespace of process %d: %w", pid, err)
	}
	defer func() { _ = namespace.Close() }()
	handle, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return fmt.Errorf("enter the network namespace of process %d: %w", pid, err)
	}
	defer handle.Close()
	if err := loopbackUp(handle); err != nil {
		return err
	}
	link, err := handle.LinkByName(InterfaceName)
	if err != nil {
		return err
	}
	if err := handle.AddrAdd(link, address(ip)); err != nil {
		return fmt.Errorf("give %s the address %s: %w", InterfaceName, ip, err)
	}
	if err := handle.LinkSetUp(link); err != nil {
		return err
	}
	for _, route := range routes {
		_, destination, err := net.ParseCIDR(route.CIDR)
		if err != nil {
			return err
		}
		if err := handle.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: destination, Gw: route.Via}); err != nil {
			return fmt.Errorf("route %s via %s: %w", route.CIDR, route.Via, err)
		}
	}
	return nil
}

func loopbackUp(handle *netlink.Handle) error {
	link, err := handle.LinkByName("lo")
	if err != nil {
		return err
	}
	return handle.LinkSetUp(link)
}

func address(ip net.IP) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(prefixLength, 32)}}
}

// hardwareAddress is a locally administered one that has the IP address in it.
func hardwareAddress(ip net.IP) net.HardwareAddr {
	return append(net.HardwareAddr{2, 0}, ip.To4()...)
}
