// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strconv"
	"time"

	"coolops.cn/database-manager/internal/engine/optionfile"
	"coolops.cn/database-manager/internal/engine/parameter"
	"coolops.cn/database-manager/internal/plan"
)

// liveFile is the name of the file with the parameters that are live.
const liveFile = "live.cnf"

// maxIOCapacity bounds innodb_io_capacity, which the server cuts otherwise.
const maxIOCapacity = 20_000

// Parameters are what spec.config may set.
//
// Not among them is what would reach out of the database or undo a promise:
// files and plug-ins, the network, accounts and who may come in, the binary log
// and replication, what makes a commit durable, and what would log statements,
// which can hold a secret or fill the volume.
func (Engine) Parameters() []plan.Parameter {
	return optionfile.Parameters(words(), append(liveParameters(), fixedParameters()...)...)
}

func words() optionfile.Words { return optionfile.Words{On: "1", Off: "0"} }

func liveParameters() []plan.Parameter {
	live := optionfile.Live
	return []plan.Parameter{
		live("binlog_row_metadata", "MINIMAL", parameter.OneOf("MINIMAL", "FULL")),
		// All of one character set: the two variables change each other otherwise.
		live("collation_server", "utf8mb4_0900_ai_ci", parameter.OneOf(
			"utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin",
			"utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci", "utf8mb4_zh_0900_as_cs")),
		live("cte_max_recursion_depth", "1000", parameter.Integer(0, 1<<32-1)),
		live("event_scheduler", "ON", parameter.Switch("ON", "OFF")),
		live("group_concat_max_len", "1024", optionfile.Bytes(1, "4", "1G")),
		live("innodb_flush_neighbors", "0", parameter.Integer(0, 2)),
		live("innodb_io_capacity", "10000", parameter.Integer(100, maxIOCapacity)),
		live("innodb_redo_log_capacity", strconv.Itoa(100*mebi), optionfile.Bytes(mebi, "32M", "128G")),
		live("lock_wait_timeout", "31536000", optionfile.Seconds(1)),
		live("max_allowed_packet", strconv.Itoa(64*mebi), optionfile.Bytes(optionfile.Kibi, "1M", "1G")),
		live("max_execution_time", "0", parameter.Integer(0, 1<<32-1)),
		live("sort_buffer_size", "262144", optionfile.Bytes(1, "32K", "1G")),
		live("sql_mode", "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION", parameter.SetOf(
			"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION",
			"NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE",
			"ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "TIME_TRUNCATE_FRACTIONAL")),
		live("sql_require_primary_key", words().Off, words().Switch()),
		live("table_definition_cache", "2000", parameter.Integer(400, 65_536)),
		live("table_open_cache", "4000", parameter.Integer(400, 65_536)),
		live("temptable_max_ram", strconv.Itoa(64*mebi), optionfile.Bytes(mebi, "2M", "64G")),
		live("thread_cache_size", "9", parameter.Integer(0, 16_384)),
		live("time_zone", "SYSTEM", parameter.Offset("SYSTEM", 13*time.Hour+59*time.Minute, 14*time.Hour)),
		live("transaction_isolation", "REPEATABLE-READ", parameter.OneOf("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")),
	}
}

func fixedParameters() []plan.Parameter {
	fixed := optionfile.Fixed
	return []plan.Parameter{
		fixed("innodb_autoinc_lock_mode", "2", parameter.Integer(0, 2)),
		// A running server takes it, too, and stops for as long as that takes.
		fixed("innodb_log_buffer_size", strconv.Itoa(16*mebi), optionfile.Bytes(mebi, "1M", "1G")),
		fixed("innodb_read_io_threads", "4", parameter.Integer(1, 64)),
		fixed("innodb_write_io_threads", "4", parameter.Integer(1, 64)),
		fixed("ngram_token_size", "2", parameter.Integer(1, 10)),
		fixed("table_open_cache_instances", "16", parameter.Integer(1, 64)),
	}
}

// LiveFiles returns the file that the configuration includes.
func (Engine) LiveFiles(live plan.Settings) map[string]string {
	return map[string]string{liveFile: optionfile.Render(group, optionfile.FromSettings(live))}
}

// fixedOptions are what the spec sets, of the parameters that aren't live.
func fixedOptions(fixed plan.Settings) []optionfile.Option {
	options := optionfile.FromSettings(fixed)
	if size, isSet := fixed[optionfile.BufferPool]; isSet {
		options = append(options, optionfile.Option{Name: "innodb-buffer-pool-instances", Value: instances(size)})
	}
	return options
}

// instances is how many parts a buffer pool has. A size is rounded up to a whole
// number of pieces of 128 MiB in each part, and by itself the server chooses the
// number by the processors that it sees. With one part for each GiB, or one
// alone, every multiple of 128 MiB is a whole number: 3 GiB are 3 parts of 8
// pieces, 1.5 GiB one of 12.
func instances(poolSize string) string {
	size, err := strconv.ParseInt(poolSize, 10, 64)
	if err != nil || size%optionfile.Gibi != 0 {
		return "1"
	}
	return strconv.FormatInt(min(size/optionfile.Gibi, 8), 10)
}
