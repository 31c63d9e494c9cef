// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/engine/optionfile"
	"coolops.cn/database-manager/internal/plan"
)

// group is the part of an option file that the server reads.
const group = "mysqld"

// config renders the server's option file. What comes later wins: what the spec
// sets, and then the live parameters that the server took last. What a member
// decides for itself, that is, whether it takes writes, stands in its data, where
// SET PERSIST puts it, and wins over this file.
func config(fixed plan.Settings) string {
	options := slices.Concat(places(), safety(), replication(), memory(), fixedOptions(fixed))
	return optionfile.Render(group, options) + "!include " + plan.DataDir + "/" + liveFile + "\n"
}

func places() []optionfile.Option {
	return []optionfile.Option{
		{Name: "datadir", Value: "/data/db"},
		{Name: "socket", Value: Socket},
		{Name: "port", Value: strconv.Itoa(Port)},
		// All addresses of both families.
		{Name: "bind-address", Value: "*"},
		// The other protocol, which nobody here speaks.
		{Name: "mysqlx", Value: "OFF"},
	}
}

func safety() []optionfile.Option {
	return []optionfile.Option{
		// No member takes writes but one that was promoted.
		{Name: "super-read-only", Value: "ON"},
		{Name: "read-only", Value: "ON"},
		// Accounts are made for any host: no name is ever looked up.
		{Name: "skip-name-resolve", Value: "ON"},
		// No file of the server, or of a client, is read or written by SQL.
		{Name: "local-infile", Value: "OFF"},
		{Name: "secure-file-priv", Value: "NULL"},
		// Each start says that the accounts exist already (they should), and that
		// the certificate is self-signed (it is). A probe, for whose account some
		// plug-in is taken by chance, says that the plug-in is deprecated.
		{Name: "log-error-suppression-list", Value: "MY-010235,MY-010068,MY-013360"},
		// Else the owner of the database could make no trigger. Replication is
		// by rows, so that a function needn't be deterministic.
		{Name: "log-bin-trust-function-creators", Value: "ON"},
	}
}

// replication is on from the start, so that members can be added later. A
// commit is on the disk when the client hears of it.
func replication() []optionfile.Option {
	return []optionfile.Option{
		// Each member has another one, by its start.
		{Name: "server-id", Value: "1"},
		{Name: "gtid-mode", Value: "ON"},
		{Name: "enforce-gtid-consistency", Value: "ON"},
		{Name: "log-bin", Value: "binlog"},
		{Name: "log-replica-updates", Value: "ON"},
		{Name: "sync-binlog", Value: "1"},
		{Name: "innodb-flush-log-at-trx-commit", Value: "1"},
		// Files of this size are removed once they are three days old.
		{Name: "max-binlog-size", Value: strconv.Itoa(256 * mebi)},
		{Name: "binlog-expire-logs-seconds", Value: strconv.Itoa(3 * 24 * 60 * 60)},
		// What was received is on the disk before it is acknowledged, and is
		// applied after a restart, not thrown away and asked for again: whoever
		// sent it may be gone.
		{Name: "relay-log", Value: "relay"},
		{Name: "sync-relay-log", Value: "1"},
		{Name: "relay-log-recovery", Value: "OFF"},
		// What a start executes starts replication, with the newest password.
		{Name: "skip-replica-start", Value: "ON"},
		// A source that says nothing for so long is gone; it says something each
		// second. To stop listening to it takes no longer than this, or fails.
		{Name: "replica-net-timeout", Value: "10"},
		{Name: "rpl-stop-replica-timeout", Value: "2"},
		{Name: "plugin-load-add", Value: "semisync_source.so"},
		{Name: "plugin-load-add", Value: "semisync_replica.so"},
		{Name: "plugin-load-add", Value: "mysql_clone.so"},
		// Where a commit waits for replicas, it waits for as long as it takes, also
		// for the first one; and nobody sees it before. While a data directory is
		// made, the plug-ins aren't there.
		{Name: "loose-rpl-semi-sync-source-timeout", Value: strconv.FormatUint(math.MaxUint64, 10)},
		{Name: "loose-rpl-semi-sync-source-wait-no-replica", Value: "ON"},
		{Name: "loose-rpl-semi-sync-source-wait-point", Value: "AFTER_SYNC"},
	}
}

// memory suits a small pod. With the server's own defaults it takes 540 MB
// before the first query, with these 300 MB: half of the first figure are the
// tables of the performance schema, which keeps what tells one query, or one
// clone, from another, and no history of all sessions.
func memory() []optionfile.Option {
	options := []optionfile.Option{
		{Name: "innodb-buffer-pool-size", Value: strconv.Itoa(128 * mebi)},
		{Name: "innodb-log-buffer-size", Value: strconv.Itoa(16 * mebi)},
		{Name: "temptable-max-ram", Value: strconv.Itoa(64 * mebi)},
		// By default it follows from the other one's value at the start.
		{Name: "innodb-io-capacity-max", Value: strconv.Itoa(maxIOCapacity)},
		{Name: "performance-schema", Value: "ON"},
		{Name: "performance-schema-digests-size", Value: "500"},
	}
	for table := range strings.FieldsSeq(`
		error events-statements-history-long events-waits-history-long
		events-stages-history-long events-transactions-history-long
		accounts hosts users`) {
		options = append(options, optionfile.Option{Name: "performance-schema-" + table + "-size", Value: "0"})
	}
	return options
}

const mebi = optionfile.Mebi
