// SPDX-License-Identifier: Apache-2.0

// Package isolation cuts pods off by packet rules in their own network namespaces, as a broken wire would: nobody is
// told, connections stall. The rules go with the namespace, and so with the pod.
//
//	to the pod    ──── from loopback ──── accept
//	              └─── from others ────── drop
//	from the pod  ──── to loopback ────── accept
//	              └─── to others ──────── send, for no hop: the node drops it
//
// A packet that is dropped on its way out is an error to its sender, which a broken wire isn't; so it is sent and gets
// no further than the node. What listens on that node itself, outside of pods, may hear it, but isn't heard.
package isolation

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	// wholeTable cuts off from everybody, peersTable from the addresses in its set. They are two so that neither undoes
	// what the other does.
	wholeTable = "localcluster-isolated"
	peersTable = "localcluster-isolated-from"
)

// Cut are the rules for nft that cut a pod off from the peers besides those that it is cut off from already; without
// peers from everybody. They may be applied again.
func Cut(peers []netip.Addr) string {
	if len(peers) == 0 {
		return remove(wholeTable) + table(wholeTable, chains("", "", "meta nfproto ipv6 drop\n\t\t"))
	}
	return table(peersTable, "\tset peers {\n\t\ttype ipv4_addr\n\t}\n") +
		// Emptied first, chains have their rules once.
		fmt.Sprintf("add chain inet %[1]s in { %[2]s }\nadd chain inet %[1]s out { %[3]s }\nflush chain inet %[1]s in\nflush chain inet %[1]s out\n", peersTable, input, output) +
		element("add", peers) +
		table(peersTable, chains("ip saddr @peers ", "ip daddr @peers ", ""))
}

// Mend are the rules that undo what Cut did about these peers; without peers all of it. They may be applied again, and
// where nothing was cut.
func Mend(peers []netip.Addr) string {
	if len(peers) == 0 {
		return remove(wholeTable) + remove(peersTable)
	}
	return table(peersTable, "\tset peers {\n\t\ttype ipv4_addr\n\t}\n") + element("add", peers) + element("delete", peers)
}

// Raw is before everything else that could look at a packet.
const (
	input  = "type filter hook input priority raw; policy accept;"
	output = "type filter hook output priority raw; policy accept;"
)

func chains(from, to, first string) string {
	return fmt.Sprintf("\tchain in {\n\t\t%s\n\t\tiifname \"lo\" accept\n\t\t%sdrop\n\t}\n", input, from) +
		fmt.Sprintf("\tchain out {\n\t\t%s\n\t\toifname \"lo\" accept\n\t\t%s%sip ttl set 0\n\t}\n", output, first, to)
}

func table(name, content string) string { return fmt.Sprintf("table inet %s {\n%s}\n", name, content) }

// remove removes a table that may not exist.
func remove(name string) string {
	return fmt.Sprintf("table inet %[1]s\ndelete table inet %[1]s\n", name)
}

func element(verb string, peers []netip.Addr) string {
	texts := make([]string, len(peers))
	for i, peer := range peers {
		texts[i] = peer.String()
	}
	return fmt.Sprintf("%s element inet %s peers { %s }\n", verb, peersTable, strings.Join(texts, ", "))
}
