// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// sourceOptions are what a replica connects to its source with, besides where and
// under which name. The password lies in a file that the boot script writes; it is
// proven, and told to nobody. The boot script's own options are the same.
const sourceOptions = "passfile=/run/database/source require_auth=scram-sha-256 sslmode=disable gssencmode=disable connect_timeout=5 tcp_user_timeout=20000 user=replicator"

// isPlainName tells whether a name needs no quoting anywhere below: those of pods
// and hosts don't.
func isPlainName(name string) bool {
	isOdd := func(char rune) bool {
		return (char < 'a' || char > 'z') && (char < '0' || char > '9') && char != '-' && char != '.'
	}
	return name != "" && !strings.ContainsFunc(name, isOdd) && strings.Trim(name, "-.") == name
}

// conninfo is how a replica, whose pod has that name, connects to its source. The
// source knows by that name whether its commits rest on the replica: who isn't named
// there has no say, and nothing else is to be told to the replica.
func conninfo(name string, source plan.Source) (string, error) {
	if !isPlainName(source.Host) || !isPlainName(name) || source.Port <= 0 {
		return "", &dbclient.Refusal{Reason: "the source or the member has a name that can't be in the network"}
	}
	return fmt.Sprintf("host=%s port=%d %s application_name=%s", source.Host, source.Port, sourceOptions, name), nil
}

// hostOf returns the host that conninfo names; "" if there is none.
func hostOf(conninfo string) string {
	for option := range strings.FieldsSeq(conninfo) {
		if host, isHost := strings.CutPrefix(option, "host="); isHost {
			return host
		}
	}
	return ""
}

// followers are the names of the pods among those of attached sessions, in order,
// separated by commas. A base backup, and the operator, have other names.
func followers(attached []string) string {
	var names []string
	for _, name := range attached {
		if isPlainName(name) && name != applicationName {
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
		if !isPlainName(name) {
			return "", &dbclient.Refusal{Reason: fmt.Sprintf("%q isn't the name of a pod", name)}
		}
		names[i] = `"` + name + `"`
	}
	return fmt.Sprintf("ANY %d (%s)", ask.Count, strings.Join(names, ", ")), nil
}

// requiredBy reads a value of synchronous_standby_names, and writes it as
// Acknowledgement.String does. What isn't ours stays as it is: it differs from all
// that may be wanted.
func requiredBy(value string) string {
	countText, list, _ := strings.Cut(strings.TrimPrefix(value, "ANY "), " (")
	count, err := strconv.Atoi(countText)
	if err != nil && value != "" {
		return value
	}
	read := plan.Acknowledgement{Count: count, Names: strings.Split(strings.ReplaceAll(strings.TrimSuffix(list, ")"), `"`, ""), ", ")}
	if again, err := synchronousNames(read); err != nil || again != value {
		return value
	}
	return read.String()
}
