//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import "coolops.cn/database-manager/test/e2e/audit"

// identity begins the names of those whose requests are counted, as the API server
// calls them.
const identity = "system:serviceaccount:" + operatorNamespace + ":bench-"

// tally are requests by what they were for.
type tally struct {
	writes, reads, leases, events int
	// by is the number of those of each verb and resource.
	by map[string]int
}

// isLease and isEvent tell requests that are counted apart: those that keep the
// lease, which come at rest, too, and those that tell people what happened.
func isLease(entry audit.Entry) bool { return entry.ObjectRef.Resource == "leases" }

func isEvent(entry audit.Entry) bool { return entry.ObjectRef.Resource == "events" }

// kindOf is the verb and the resource, as "patch databasemanagers/status".
func kindOf(entry audit.Entry) string {
	kind := entry.Verb + " " + entry.ObjectRef.Resource
	if entry.ObjectRef.Subresource != "" {
		kind += "/" + entry.ObjectRef.Subresource
	}
	return kind
}

func count(entries []audit.Entry) tally {
	counted := tally{by: map[string]int{}}
	for _, entry := range entries {
		counted.by[kindOf(entry)]++
		switch {
		case isLease(entry):
			counted.leases++
		case isEvent(entry):
			counted.events++
		case entry.IsWrite():
			counted.writes++
		default:
			counted.reads++
		}
	}
	return counted
}

// isAtRest tells what a process at rest may ask for: its lease, and watches anew.
func isAtRest(entry audit.Entry) bool { return isLease(entry) || entry.Verb == "watch" }
