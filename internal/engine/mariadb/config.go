// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"math"
	"slices"
	"strconv"

	"coolops.cn/database-manager/internal/engine/optionfile"
	"coolops.cn/database-manager/internal/plan"
)

// group is the part of an option file that the server reads.
const group = "mariadbd"

// config renders the server's option file. What comes later wins: what the spec
// sets, and then the live parameters that the server took last. What a member
// decides for itself, that is, whether it takes writes, stands in a table of its
// own, which the boot script has the server read.
func config(fixed plan.Settings) string {
	options := slices.Concat(places(), safety(), replication(), memory(), optionfile.FromSettings(fixed))
	return optionfile.Render(group, options) + "!include " + plan.DataDir + "/" + liveFile + "\n"
}

func places() []optionfile.Option {
	return []optionfile.Option{
		{Name: "datadir", Value: "/data/db"},
		{Name: "socket", Value: Socket},
		{Name: "port", Value: strconv.Itoa(Port)},
		// All addresses of both families.
		{Name: "bind-address", Value: "*"},
	}
}

func safety() []optionfile.Option {
	return []optionfile.Option{
		// No member takes writes but one that was promoted.
		{Name: "read-only", Value: "ON"},
		// Accounts are made for any host: no name is ever looked up.
		{Name: "skip-name-resolve", Value: "ON"},
		// No file of a client is read by SQL, nor any of the server's but these,
		// which hold no secret and can't be written.
		{Name: "local-infile", Value: "OFF"},
		{Name: "secure-file-priv", Value: "/boot"},
		// Level 2 would tell of each probe, which is refused, as it should be.
		{Name: "log-warnings", Value: "1"},
		// Else the owner of the database could make no trigger. Replication is
		// by rows, so that a function needn't be deterministic.
		{Name: "log-bin-trust-function-creators", Value: "ON"},
		// Older versions begin with latin1.
		{Name: "character-set-server", Value: "utf8mb4"},
	}
}

// replication is on from the start, so that members can be added later. A
// commit is on the disk when the client hears of it. The number of the server and
// the name of its pod are given by the boot script.
func replication() []optionfile.Option {
	return []optionfile.Option{
		{Name: "gtid-strict-mode", Value: "ON"},
		{Name: "log-bin", Value: "binlog"},
		{Name: "binlog-format", Value: "ROW"},
		{Name: "log-slave-updates", Value: "ON"},
		{Name: "sync-binlog", Value: "1"},
		{Name: "innodb-flush-log-at-trx-commit", Value: "1"},
		// Files of this size are removed once they are three days old.
		{Name: "max-binlog-size", Value: strconv.Itoa(256 * mebi)},
		{Name: "binlog-expire-logs-seconds", Value: strconv.Itoa(3 * 24 * 60 * 60)},
		// Newer versions would keep them until somebody copies, and nobody may.
		{Name: "loose-slave-connections-needed-for-purge", Value: "0"},
		// What was received is on the disk before it is acknowledged, and isn't
		// thrown away at a restart: whoever sent it may be gone.
		{Name: "relay-log", Value: "relay"},
		{Name: "sync-relay-log", Value: "1"},
		{Name: "relay-log-recovery", Value: "OFF"},
		// Only the operator and the boot script start replication.
		{Name: "skip-slave-start", Value: "ON"},
		// A replica looks for its source for ever, and finds out within seconds
		// that it has gone silent: sources say once a second that they are there.
		{Name: "master-retry-count", Value: "0"},
		{Name: "slave-net-timeout", Value: "5"},
		// Who waits for acknowledgement waits for ever, also where nobody is
		// attached, and before anybody else sees what was written.
		{Name: "rpl-semi-sync-master-timeout", Value: strconv.FormatUint(math.MaxUint64, 10)},
		{Name: "rpl-semi-sync-master-wait-point", Value: "AFTER_SYNC"},
		{Name: "rpl-semi-sync-master-wait-no-slave", Value: "ON"},
		// A replica that is told to stop receiving tells its source, which may be gone.
		{Name: "rpl-semi-sync-slave-kill-conn-timeout", Value: "1"},
	}
}

// memory suits a small pod.
func memory() []optionfile.Option {
	return []optionfile.Option{
		{Name: "innodb-buffer-pool-size", Value: strconv.Itoa(128 * mebi)},
		// Only system tables and temporary ones are kept in Aria, none in MyISAM.
		{Name: "aria-pagecache-buffer-size", Value: strconv.Itoa(16 * mebi)},
		{Name: "key-buffer-size", Value: strconv.Itoa(mebi)},
	}
}

const mebi = optionfile.Mebi
