//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
)

// Namespace is the Kubernetes namespace that the members' names are of.
const Namespace = "test"

// A Network is what the members of one database share: each has its pod with an
// address of its own, and finds the others by the names that Kubernetes gives
// them, such as orders-0.orders-members.test.svc.
//
//	member 0     member 1     member 2     the test: Network.Dial
//	  │ eth0       │ eth0       │ eth0       │ eth0
//	  └─ pod3 ─────┴─ pod4 ─────┴─ pod5 ─────┴─ pod2
//	                 the router
//
// All these are network namespaces. The router stands between any two, and its
// rules are what isolates them: it drops what they say without a word, so that
// connections stall. Nothing of it is in this machine's own network, from which
// nothing leads there, nor back; it is gone with the test's process.
type Network struct {
	t            testing.TB
	stem         string
	router, test *os.File

	// mu guards what follows, and what is in the seats.
	mu    sync.Mutex
	seats []*seat
	// last is the address that was given last; none is given twice.
	last netip.Addr
	// enforced are the rules of the router that isolate members.
	enforced map[string]bool
}

// seat is a member's place in a Network, which it keeps from pod to pod.
type seat struct {
	network *Network
	member  *Running
	// address is the pod's; without one that of the last.
	address   netip.Addr
	isTaken   bool
	isolation isolation
}

const (
	pods    = "10.244.0.0/16"
	gateway = "10.244.0.1"
)

// NewNetwork makes a network without members, for a database whose children's
// names begin with the stem. It needs the program ip.
func NewNetwork(t testing.TB, stem string) *Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("making a network needs root")
	}
	n := &Network{t: t, stem: stem, last: netip.MustParseAddr(gateway), enforced: map[string]bool{}}
	t.Cleanup(func() { _, _ = n.router.Close(), n.test.Close() }) // they were only read, or never were
	if err := n.build(); err != nil {
		t.Fatalf("make a network: %v", err)
	}
	return n
}

func (n *Network) build() (err error) {
	if n.router, err = newNamespace(); err != nil {
		return err
	}
	if n.test, err = newNamespace(); err != nil {
		return err
	}
	forwarding := make(chan error)
	go inNamespace(n.router, func(err error) {
		if err == nil { // it is the setting of the namespace of the thread that writes it
			err = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
		}
		forwarding <- err
	})
	if err := <-forwarding; err != nil {
		return err
	}
	if err := configure(n.router, nil, "address add "+gateway+"/32 dev lo"); err != nil {
		return err
	}
	n.last = n.last.Next()
	return errors.Join(n.connect(n.test, n.last), n.admitTest())
}

// testAddress is the test's own, the first that was given.
func testAddress() netip.Addr { return netip.MustParseAddr(gateway).Next() }

// connect gives a namespace an address, and an interface that leads to the router.
func (n *Network) connect(namespace *os.File, address netip.Addr) error {
	port := portOf(address)
	if err := configure(namespace, n.router,
		"link add eth0 type veth peer name "+port+" netns /proc/self/fd/3",
		fmt.Sprintf("address add %s/32 dev eth0", address),
		"link set eth0 up",
		"route add "+gateway+" dev eth0",
		"route add "+pods+" via "+gateway,
	); err != nil {
		return err
	}
	return configure(n.router, nil, "link set "+port+" up", fmt.Sprintf("route add %s dev %s", address, port))
}

// portOf is the router's interface towards an address.
func portOf(address netip.Addr) string {
	bytes := address.As4()
	return fmt.Sprintf("pod%d", int(bytes[2])<<8|int(bytes[3]))
}

// Start starts a member, as the function Start does, in a pod of this network
// with the number as its ordinal. All others know its name when it starts.
func (n *Network) Start(ordinal int, member Member) *Running {
	n.t.Helper()
	name := fmt.Sprintf("%s-%d", n.stem, ordinal)
	n.mu.Lock()
	isThere := slices.ContainsFunc(n.seats, func(s *seat) bool { return s.member.name == name })
	n.mu.Unlock()
	if isThere {
		n.t.Fatalf("there is a member %s: restart it, or make its pod anew", name)
	}
	return start(n.t, member, name, &seat{network: n})
}

// take gives the pod of a seat's member an address, and tells the others.
func (s *seat) take(namespace *os.File) error {
	n := s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.seats, s) {
		n.seats = append(n.seats, s)
	}
	n.last = n.last.Next()
	s.address, s.isTaken = n.last, true
	// Before there is anything to be isolated.
	if err := n.enforce(); err != nil {
		return err
	}
	return errors.Join(n.connect(namespace, s.address), n.publish())
}

// leave takes the address away again.
func (s *seat) leave() error {
	n := s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	s.isTaken = false
	// The namespace would end a while after its last process, and its interface.
	return errors.Join(n.publish(), configure(n.router, nil, "link delete "+portOf(s.address)))
}

// Address returns the address of the member's pod in its Network, without a port.
func (r *Running) Address() string {
	r.t.Helper()
	if r.seat == nil {
		r.t.Fatalf("%s is in no Network", r.name)
	}
	r.seat.network.mu.Lock()
	defer r.seat.network.mu.Unlock()
	return r.seat.address.String()
}

// Dial connects to a member from where the test is, beside the members, as the
// operator or an application does: to an address, or to one of the members' names,
// with a port. Drivers take it as their dialer. IsolateFromTest cuts what it
// connected. Any goroutine may call it at any time.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		if host, err = n.lookUp(host); err != nil {
			return nil, err
		}
	}
	return dialIn(ctx, n.test, network, net.JoinHostPort(host, port))
}
