//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// loopbackNames begins every pod's file of names.
const loopbackNames = "127.0.0.1 localhost\n::1 localhost\n"

// Host returns the name by which the other members of the Network reach this one,
// and Network.Dial does, whatever its address is: for instance
// orders-0.orders-members.test.svc.
func (r *Running) Host() string {
	r.t.Helper()
	if r.seat == nil {
		r.t.Fatalf("%s is in no Network", r.name)
	}
	return r.seat.names()[1]
}

// names are those that a pod finds by Kubernetes' DNS, beginning with the whole
// one, down to what the search path completes.
func (s *seat) names() []string {
	short := s.member.name + "." + s.network.stem + "-members"
	return []string{
		short + "." + Namespace + ".svc.cluster.local",
		short + "." + Namespace + ".svc",
		short + "." + Namespace,
		short,
	}
}

// publish writes the names of all pods that there are where each of them reads
// them. A member without a pod has no name, not an old address.
func (n *Network) publish() error {
	var known strings.Builder
	known.WriteString(loopbackNames)
	for _, s := range n.seats {
		if s.isTaken {
			fmt.Fprintf(&known, "%s %s\n", s.address, strings.Join(s.names(), " "))
		}
	}
	var errs []error
	for _, s := range n.seats {
		// As the kubelet writes it, the pod's own name is its address.
		own := known.String()
		if s.isTaken {
			own += fmt.Sprintf("%s %s\n", s.address, s.member.name)
		}
		// Moved into place, so that no look-up reads half of it.
		file := s.member.path("names", "hosts")
		errs = append(errs, os.WriteFile(file+".new", []byte(own), 0o644), os.Rename(file+".new", file))
	}
	return errors.Join(errs...)
}

// lookUp returns the address of a name.
func (n *Network) lookUp(name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.seats {
		if s.isTaken && slices.Contains(s.names(), name) {
			return s.address.String(), nil
		}
	}
	return "", &net.DNSError{Err: "no member has this name now", Name: name, IsNotFound: true}
}
