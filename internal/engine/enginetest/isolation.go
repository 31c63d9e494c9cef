//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// isolation is what a member is cut off from.
type isolation struct {
	// isWhole means all members, also those that are still to come.
	isWhole bool
	members []*seat
	// isFromTest means what Network.Dial connects.
	isFromTest bool
}

// The router goes through its rules in this order, and ends with the routes.
const (
	pairPriority = 100 // what is dropped between two
	testPriority = 200 // the test reaches all others
	allPriority  = 300 // what is dropped between one and everybody else
)

// Isolate cuts the member off from others of its Network, or from all, later ones
// included, if none are named: what they send to one another is dropped without a
// word. Connections stall, and aren't reset. It adds to what was cut before, and
// follows those whose address changes. The test still reaches the member.
func (r *Running) Isolate(from ...*Running) {
	r.t.Helper()
	r.change(func(i *isolation) {
		i.isWhole = i.isWhole || len(from) == 0
		for _, other := range from {
			if other.seat == nil || other.seat.network != r.seat.network {
				r.t.Errorf("%s isn't in the Network of %s", other.name, r.name)
				continue
			}
			i.members = append(i.members, other.seat)
		}
	})
}

// IsolateFromTest cuts the connections of Network.Dial to the member, and those
// alone, as Isolate does.
func (r *Running) IsolateFromTest() {
	r.t.Helper()
	r.change(func(i *isolation) { i.isFromTest = true })
}

// Rejoin takes back what Isolate and IsolateFromTest did to this member. One that
// another member is isolated from as well stays apart from that one.
func (r *Running) Rejoin() {
	r.t.Helper()
	r.change(func(i *isolation) { *i = isolation{} })
}

func (r *Running) change(change func(*isolation)) {
	r.t.Helper()
	if r.seat == nil {
		r.t.Fatalf("%s is in no Network", r.name)
	}
	n := r.seat.network
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&r.seat.isolation)
	if err := n.enforce(); err != nil {
		r.t.Fatalf("change what %s is isolated from: %v", r.name, err)
	}
}

// admitTest has the test reach members that are isolated from all others.
func (n *Network) admitTest() error {
	return configure(n.router, nil,
		fmt.Sprintf("rule add from %s lookup main priority %d", testAddress(), testPriority),
		fmt.Sprintf("rule add to %s lookup main priority %d", testAddress(), testPriority),
	)
}

// enforce brings the router's rules to what the members' isolation asks for. New
// ones come first, so that no packet slips through in between. A packet that is
// forwarded to a black hole is answered by nothing, unlike one whose sender is the
// router itself: so the test has a namespace of its own, too.
func (n *Network) enforce() error {
	wanted := n.rules()
	var commands []string
	for rule := range wanted {
		if !n.enforced[rule] {
			commands = append(commands, "rule add "+rule)
		}
	}
	added := len(commands)
	for rule := range n.enforced {
		if !wanted[rule] {
			commands = append(commands, "rule delete "+rule)
		}
	}
	slices.Sort(commands[:added])
	slices.Sort(commands[added:])
	if len(commands) == 0 {
		return nil
	}
	if err := configure(n.router, nil, commands...); err != nil {
		return errors.Join(errors.New("change the router's rules"), err)
	}
	n.enforced = wanted
	return nil
}

// rules are the router's rules that isolate members, in the words of ip.
func (n *Network) rules() map[string]bool {
	rules := map[string]bool{}
	add := func(priority int, one netip.Addr, other string) {
		rules[fmt.Sprintf("blackhole from %s to %s priority %d", one, other, priority)] = true
		rules[fmt.Sprintf("blackhole from %s to %s priority %d", other, one, priority)] = true
	}
	for _, s := range n.seats {
		if s.isolation.isFromTest {
			add(pairPriority, s.address, testAddress().String())
		}
		if s.isolation.isWhole {
			add(allPriority, s.address, pods)
		}
		for _, other := range s.isolation.members {
			add(pairPriority, s.address, other.address.String())
		}
	}
	return rules
}
