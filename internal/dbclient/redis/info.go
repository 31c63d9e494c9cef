// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// The source of a member that follows nobody and yet takes no writes, as the boot
// script has it, too: nothing ever listens there.
const (
	nowhereHost = "127.0.0.1"
	nowherePort = "1"
)

// failureAfter is how long a replica may be without its source before that is a
// failure, and no more what happens at every start.
const failureAfter = 5 * time.Second

// info is what a server answers to INFO: values by name. What is missing, or is no
// number where one should be, counts as not known.
type info map[string]string

// sections are those of INFO that are read here.
func sections() []string { return []string{"server", "replication", "persistence"} }

// parseInfo reads lines of "name:value", in sections.
func parseInfo(answer string) info {
	fields := info{}
	for line := range strings.Lines(answer) {
		if name, value, isField := strings.Cut(strings.TrimSpace(line), ":"); isField {
			fields[name] = value
		}
	}
	return fields
}

// state puts it into the planner's words; required is the value of
// min-replicas-to-write.
func (i info) state(required string) (plan.EngineState, error) {
	// Valkey gives redis_version too: the version that it is compatible with.
	version := i["valkey_version"]
	if version == "" {
		version = i["redis_version"]
	}
	state := plan.EngineState{
		Version:   version,
		RunID:     i["run_id"],
		IsLoading: i.isLoading(),
		Progress:  plan.Progress{Position: i.position(), IsDrained: true},
	}
	switch i["role"] {
	case "master":
		state.Role = v1alpha1.MemberRolePrimary
		count, err := strconv.Atoi(required)
		if err != nil {
			return plan.EngineState{}, fmt.Errorf("it doesn't say how many replicas it needs, but %q", required)
		}
		state.Replication.Required = plan.Acknowledgement{Count: count}.String()
	case "slave":
		state.Role = v1alpha1.MemberRoleReplica
		state.Replication = i.following()
		state.Progress.Lag = i.lag()
		// What isn't executed is a part of a command: whoever is cut off its source
		// drops it, and nobody was told that it had arrived.
		state.Progress.IsDrained = i["slave_read_repl_offset"] == i["slave_repl_offset"]
	default:
		return plan.EngineState{}, fmt.Errorf("it doesn't say what role it has, but %q", i["role"])
	}
	state.Replication.Followers = i.followerNames()
	return state, nil
}

func (i info) isPrimary() bool { return i["role"] == "master" }
func (i info) isLoading() bool { return i["loading"] == "1" }

// source is the host that the member is told to copy from; empty if that is
// nowhere, and of a primary.
func (i info) source() string {
	if i["master_host"] == nowhereHost && i["master_port"] == nowherePort {
		return ""
	}
	return i["master_host"]
}

// isConnected tells whether it has all that its source had when it connected, and
// gets what comes. That ends when the source is silent for as long as repl-timeout
// says, not between two of its words.
func (i info) isConnected() bool { return i["master_link_status"] == "up" && !i.isLoading() }

// following is what a replica says of copying. A replica acknowledges by itself
// what it has executed, and can't be told not to.
func (i info) following() plan.Replication {
	following := plan.Replication{
		Source:       i.source(),
		IsReceiving:  i.isConnected(),
		IsCurrent:    i.isConnected(),
		Acknowledges: i.isConnected(),
	}
	isCopying := i["master_sync_in_progress"] == "1" || i.isLoading()
	if following.Source != "" && !following.IsReceiving && !isCopying && i.disconnectedFor() >= failureAfter {
		following.Failure = "it doesn't reach its source, or isn't taken as a replica"
	}
	return following
}

// disconnectedFor is how long it is without its source; since its start if it
// never was connected.
func (i info) disconnectedFor() time.Duration {
	if since, isKnown := i.seconds("master_link_down_since_seconds"); isKnown {
		return since
	}
	uptime, _ := i.seconds("uptime_in_seconds") // no time at all where it isn't said
	return uptime
}

// seconds returns a number of seconds; false if there is none, or a negative one,
// by which the server says that it doesn't know.
func (i info) seconds(name string) (time.Duration, bool) {
	seconds, err := strconv.ParseInt(i[name], 10, 32)
	return time.Duration(seconds) * time.Second, err == nil && seconds >= 0
}

// lag is how long a replica has been cut off; a second at least where it has been
// at all, and negative where it has nothing of a source.
func (i info) lag() time.Duration {
	since, isKnown := i.seconds("master_link_down_since_seconds")
	switch {
	case i.isConnected():
		return 0
	case !isKnown || !i.knowsPosition():
		return -1
	default:
		return max(since, time.Second)
	}
}

// knowsPosition tells whether the offset in the member's history means anything. A
// replica has a backlog from the end of its first copy on, with which the history
// of its source became its own, until it begins to load another one. After a
// restart it has none, but invents a history, and an offset.
func (i info) knowsPosition() bool {
	return !i.isLoading() && (i.isPrimary() || i["repl_backlog_active"] == "1")
}

// position is the member's, in the form in which the engine compares it; empty if
// it doesn't know: the history that it is in, and how far, and then, if it left
// another one for that, which it was, and where. "HISTORY:OFFSET,HISTORY:OFFSET".
func (i info) position() string {
	offset, err := strconv.ParseUint(i["master_repl_offset"], 10, 63)
	if err != nil || !i.knowsPosition() || !isHistory(i["master_replid"]) {
		return ""
	}
	position := fmt.Sprintf("%s:%d", i["master_replid"], offset)
	// The first byte that isn't of the former history any more.
	end, err := strconv.ParseUint(i["second_repl_offset"], 10, 63)
	if err == nil && end > 0 && end-1 <= offset && isHistory(i["master_replid2"]) {
		position += fmt.Sprintf(",%s:%d", i["master_replid2"], end-1)
	}
	return position
}

// isHistory tells whether a server names a history. It gives one of zeros where
// there is none.
func isHistory(name string) bool {
	const length = 40
	return len(name) == length && strings.Trim(name, "0123456789abcdef") == "" && strings.Trim(name, "0") != ""
}

// follower is a replica as its source sees it.
type follower struct {
	host     string
	isOnline bool
	// offset is the last that it acknowledged.
	offset string
}

// followers are those that are attached: each a field such as
// slave0:ip=orders-1.orders-members.shop.svc,port=6379,state=online,offset=42,lag=0
func (i info) followers() []follower {
	var followers []follower
	for name, value := range i {
		number, isFollower := strings.CutPrefix(name, "slave")
		if _, err := strconv.Atoi(number); !isFollower || err != nil {
			continue
		}
		of := map[string]string{}
		for field := range strings.SplitSeq(value, ",") {
			if key, word, isField := strings.Cut(field, "="); isField {
				of[key] = word
			}
		}
		followers = append(followers, follower{host: of["ip"], isOnline: of["state"] == "online", offset: of["offset"]})
	}
	return followers
}

// followerNames are the names of the followers' pods, which are what the names of
// their hosts begin with.
func (i info) followerNames() string {
	var names []string
	for _, follower := range i.followers() {
		name := follower.host
		if net.ParseIP(name) == nil {
			name, _, _ = strings.Cut(name, ".")
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// followersHaveAll tells whether each replica that follows has acknowledged all
// that the member has. One that still copies doesn't follow yet.
func (i info) followersHaveAll() bool {
	return !slices.ContainsFunc(i.followers(), func(f follower) bool {
		return f.isOnline && f.offset != i["master_repl_offset"]
	})
}
