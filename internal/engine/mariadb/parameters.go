// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"strconv"
	"time"

	"coolops.cn/database-manager/internal/engine/optionfile"
	"coolops.cn/database-manager/internal/engine/parameter"
	"coolops.cn/database-manager/internal/plan"
)

// liveFile is the name of the file with the parameters that are live.
const liveFile = "live.cnf"

// Parameters are what spec.config may set.
//
// Not among them is what would reach out of the database or undo a promise:
// files and plug-ins, the network, accounts and who may come in, the binary log
// and replication, what makes a commit durable, and what would log statements,
// which can hold a secret or fill the volume.
func (Engine) Parameters() []plan.Parameter {
	return optionfile.Parameters(optionfile.Words{On: "ON", Off: "OFF"}, append(liveParameters(), fixedParameters()...)...)
}

func liveParameters() []plan.Parameter {
	live := optionfile.Live
	return []plan.Parameter{
		live("binlog_row_metadata", "NO_LOG", parameter.OneOf("NO_LOG", "MINIMAL", "FULL")),
		// All of one character set: the two variables change each other otherwise.
		// The versions' own defaults differ; this is the newest one's.
		live("collation_server", "utf8mb4_uca1400_ai_ci", parameter.OneOf(
			"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_nopad_bin", "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_ci", "utf8mb4_uca1400_as_cs",
			"utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci")),
		live("event_scheduler", "OFF", parameter.Switch("ON", "OFF")),
		live("group_concat_max_len", strconv.Itoa(mebi), optionfile.Bytes(1, "4", "1G")),
		live("idle_transaction_timeout", "0", optionfile.Seconds(0)),
		live("idle_write_transaction_timeout", "0", optionfile.Seconds(0)),
		live("in_predicate_conversion_threshold", "1000", parameter.Integer(0, 1<<32-1)),
		live("innodb_flush_neighbors", "1", parameter.Integer(0, 2)),
		live("innodb_io_capacity", "200", parameter.Integer(100, 1_000_000)),
		live("innodb_purge_threads", "4", parameter.Integer(1, 32)),
		live("innodb_read_io_threads", "4", parameter.Integer(1, 64)),
		live("innodb_write_io_threads", "4", parameter.Integer(2, 64)),
		live("lock_wait_timeout", "86400", optionfile.Seconds(0)),
		live("max_allowed_packet", strconv.Itoa(16*mebi), optionfile.Bytes(optionfile.Kibi, "1M", "1G")),
		// A shorter limit would end what every client begins a session with.
		live("max_statement_time", "0.000000", noneOr(parameter.Decimal(1, 365*24*60*60, 6))),
		live("optimizer_use_condition_selectivity", "4", parameter.Integer(1, 5)),
		live("sort_buffer_size", strconv.Itoa(2*mebi), optionfile.Bytes(1, "32K", "1G")),
		live("sql_mode", "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION", parameter.SetOf(
			"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "IGNORE_BAD_TABLE_OPTIONS", "ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION",
			"NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE",
			"ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "NO_AUTO_CREATE_USER", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION",
			"PAD_CHAR_TO_FULL_LENGTH", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL")),
		live("table_definition_cache", "400", parameter.Integer(400, 65_536)),
		live("table_open_cache", "2000", parameter.Integer(400, 65_536)),
		live("time_zone", "SYSTEM", parameter.Offset("SYSTEM", 12*time.Hour+59*time.Minute, 13*time.Hour)),
		live("tx_isolation", "REPEATABLE-READ", parameter.OneOf("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")),
	}
}

func fixedParameters() []plan.Parameter {
	fixed := optionfile.Fixed
	return []plan.Parameter{
		fixed("innodb_autoinc_lock_mode", "1", parameter.Integer(0, 2)),
		fixed("innodb_log_buffer_size", strconv.Itoa(16*mebi), optionfile.Bytes(mebi, "2M", "1G")),
		// A running server takes it, too, but not while writing is as slow as that is.
		fixed("innodb_log_file_size", strconv.Itoa(96*mebi), optionfile.Bytes(mebi, "16M", "128G")),
	}
}

// noneOr is 0, which stands for no limit, or one of the values.
func noneOr(values plan.Values) plan.Values {
	none := parameter.Decimal(0, 0, 6)
	return plan.Values{
		Allowed: "0 for none, or " + values.Allowed,
		Read: func(value string) (string, bool) {
			if shown, isNone := none.Read(value); isNone {
				return shown, true
			}
			return values.Read(value)
		},
	}
}

// LiveFiles returns the file that the configuration includes.
func (Engine) LiveFiles(live plan.Settings) map[string]string {
	return map[string]string{liveFile: optionfile.Render(group, optionfile.FromSettings(live))}
}
