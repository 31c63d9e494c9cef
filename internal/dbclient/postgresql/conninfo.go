// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

const (
	// joining ends the name under which a replica is attached whose word doesn't
	// count: synchronous_standby_names holds names of pods, and none is like that.
	joining = ".joining"

	// sourceOptions are what a replica connects to its source with, besides where
	// and as whom. The password lies in a file that the boot script writes; it is
	// proven, and told to nobody. The boot script's own differ in nothing.
	sourceOptions = "passfile=/run/database/source require_auth=scram-sha-256 sslmode=disable gssencmode=disable connect_timeout=5 tcp_user_timeout=20000 user=replicator"
)

var (
	// dnsName is what needs no quoting anywhere below.
	dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	// hostPart and namePart find parts of what conninfo writes.
	hostPart = regexp.MustCompile(`(?:^| )host=(\S*)`)
	namePart = regexp.MustCompile(`(?:^| )application_name=(\S*)`)
	// required is what synchronousNames writes.
	required = regexp.MustCompile(`^ANY ([1-9][0-9]{0,3}) \(("[-a-z0-9.]+"(?:, "[-a-z0-9.]+")*)\)$`)
)

// conninfo is how a replica, whose pod has that name, connects to its source.
func conninfo(name string, source plan.Source) (string, error) {
	if !dnsName.MatchString(source.Host) || !dnsName.MatchString(name) || source.Port <= 0 {
		return "", &dbclient.Refusal{Reason: "the source or the member has a name that can't be in the network"}
	}
	if !source.Acknowledges {
		name += joining
	}
	return fmt.Sprintf("host=%s port=%d %s application_name=%s", source.Host, source.Port, sourceOptions, name), nil
}

// hostOf returns the host that conninfo names; "" if there is none.
func hostOf(conninfo string) string { return submatch(hostPart, conninfo) }

// acknowledges tells whether a source's commits may rest on whom that connects.
func acknowledges(conninfo string) bool {
	name := submatch(namePart, conninfo)
	return name != "" && !strings.HasSuffix(name, joining)
}

func submatch(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// followers are the names of the pods among those of attached sessions, in order,
// separated by commas. A base backup, and the operator, have other names.
func followers(attached []string) string {
	var names []string
	for _, name := range attached {
		if name = strings.TrimSuffix(name, joining); dnsName.MatchString(name) && name != applicationName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// synchronousNames is the value of synchronous_standby_names by which a primary
// waits for that. Names stand in quotes: * would stand for anybody, and without
// ANY the first of the names alone would count.
func synchronousNames(ask plan.Acknowledgement) (string, error) {
	if ask.Count == 0 {
		return "", nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(ask.Names)))
	if ask.Count < 0 || ask.Count > len(names) {
		return "", &dbclient.Refusal{Reason: fmt.Sprintf("%d of %d replicas can't acknowledge", ask.Count, len(names))}
	}
	for i, name := range names {
		if !dnsName.MatchString(name) {
			return "", &dbclient.Refusal{Reason: fmt.Sprintf("%q isn't the name of a pod", name)}
		}
		names[i] = `"` + name + `"`
	}
	return fmt.Sprintf("ANY %d (%s)", ask.Count, strings.Join(names, ", ")), nil
}

// requiredBy reads a value of synchronous_standby_names, and writes it as
// Acknowledgement.String does. What isn't ours stays as it is: it differs from all
// that may be wanted.
func requiredBy(synchronousNames string) string {
	if synchronousNames == "" {
		return plan.Acknowledgement{}.String()
	}
	found := required.FindStringSubmatch(synchronousNames)
	if found == nil {
		return synchronousNames
	}
	return found[1] + " of " + strings.ReplaceAll(strings.ReplaceAll(found[2], `"`, ""), ", ", ",")
}
