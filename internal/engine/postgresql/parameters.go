// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/engine/parameter"
	"coolops.cn/database-manager/internal/plan"
)

// liveFile sets the parameters that are live.
const liveFile = "live.conf"

// zones are the places of the time zone database that every image knows.
//
//go:embed zones.txt
var zones string

// Parameters are what spec.config may set: what every version has, and what says
// nothing of replication, the accounts, the network, the files, or of how durable
// a commit is, and has no statement logged. A number that stands for memory or
// time has the server's own base unit, in which State gives it as well.
func (Engine) Parameters() []plan.Parameter {
	parameters := slices.Concat(fixedParameters(), memoryParameters(), plannerParameters(), timeoutParameters(),
		vacuumParameters(), writingParameters(), observationParameters(), sessionParameters())
	slices.SortFunc(parameters, func(a, b plan.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return parameters
}

// fixedParameters need another start.
func fixedParameters() []plan.Parameter {
	return []plan.Parameter{
		fixed("autovacuum_freeze_max_age", "200000000", parameter.Integer(100_000, 1_000_000_000)),
		// Newer servers keep 16 places for them.
		fixed("autovacuum_max_workers", "3", parameter.Integer(1, 16)),
		// Of those three are for the operator.
		fixed("max_connections", "100", parameter.Integer(10, 5000)),
		fixed("max_locks_per_transaction", "64", parameter.Integer(10, 1024)),
		fixed("max_prepared_transactions", "0", parameter.Integer(0, 1000)),
		fixed("max_worker_processes", "8", parameter.Integer(2, 256)),
		fixed("shared_buffers", "128MB", pages("1MB", "1TB")),
		fixed("track_activity_query_size", "1kB", memory(1, "100", "64kB")),
		fixed("track_commit_timestamp", "off", onOrOff()),
	}
}

// memoryParameters say what a session, or an operation in it, may take.
func memoryParameters() []plan.Parameter {
	return []plan.Parameter{
		live("hash_mem_multiplier", "2", number(1, 1000)),
		live("maintenance_work_mem", "64MB", kilobytes("1MB", "64GB")),
		live("temp_buffers", "8MB", pages("1MB", "64GB")),
		live("temp_file_limit", "-1", orElse("-1", kilobytes("1MB", "1TB"))),
		live("work_mem", "4MB", kilobytes("64kB", "64GB")),
	}
}

// plannerParameters say what the planner knows of the machine, and how it plans.
func plannerParameters() []plan.Parameter {
	return []plan.Parameter{
		live("default_statistics_target", "100", parameter.Integer(1, 10_000)),
		live("effective_cache_size", "4GB", pages("1MB", "8TB")),
		// Versions differ in their own default; this is the newer one's.
		live("effective_io_concurrency", "16", parameter.Integer(0, 1000)),
		live("enable_partitionwise_aggregate", "off", onOrOff()),
		live("enable_partitionwise_join", "off", onOrOff()),
		live("from_collapse_limit", "8", parameter.Integer(1, 1000)),
		live("jit", "on", onOrOff()),
		live("join_collapse_limit", "8", parameter.Integer(1, 1000)),
		live("max_parallel_maintenance_workers", "2", parameter.Integer(0, 1024)),
		live("max_parallel_workers", "8", parameter.Integer(0, 1024)),
		live("max_parallel_workers_per_gather", "2", parameter.Integer(0, 1024)),
		live("plan_cache_mode", "auto", parameter.OneOf("auto", "force_generic_plan", "force_custom_plan")),
		live("random_page_cost", "4", number(0, 10_000)),
		live("seq_page_cost", "1", number(0, 10_000)),
	}
}

// timeoutParameters end what takes too long. The operator's own sessions have
// them, too: it asks every two seconds, and an answer takes less than one.
func timeoutParameters() []plan.Parameter {
	const fortnight = "14d"
	return []plan.Parameter{
		live("client_connection_check_interval", "0", milliseconds("0", "1d")),
		live("deadlock_timeout", "1s", milliseconds("10ms", "1h")),
		live("idle_in_transaction_session_timeout", "0", orElse("0", milliseconds("1s", fortnight))),
		live("idle_session_timeout", "0", orElse("0", milliseconds("10s", fortnight))),
		live("lock_timeout", "0", orElse("0", milliseconds("1s", fortnight))),
		live("statement_timeout", "0", orElse("0", milliseconds("1s", fortnight))),
		live("transaction_timeout", "0", orElse("0", milliseconds("1s", fortnight))),
	}
}

// vacuumParameters say when tables are cleaned up, and how fast. That they are
// isn't for the spec: a database in which they aren't ends up read-only.
func vacuumParameters() []plan.Parameter {
	return []plan.Parameter{
		live("autovacuum_analyze_scale_factor", "0.1", number(0, 100)),
		live("autovacuum_analyze_threshold", "50", parameter.Integer(0, math.MaxInt32)),
		live("autovacuum_naptime", "1min", seconds("1s", "1d")),
		live("autovacuum_vacuum_cost_delay", "2", number(0, 100)),
		live("autovacuum_vacuum_cost_limit", "-1", orElse("-1", parameter.Integer(1, 10_000))),
		live("autovacuum_vacuum_insert_scale_factor", "0.2", number(0, 100)),
		live("autovacuum_vacuum_insert_threshold", "1000", parameter.Integer(-1, math.MaxInt32)),
		live("autovacuum_vacuum_scale_factor", "0.2", number(0, 100)),
		live("autovacuum_vacuum_threshold", "50", parameter.Integer(0, math.MaxInt32)),
	}
}

// writingParameters say how changes get to the volume, and how much of it the
// log of changes takes between two checkpoints.
func writingParameters() []plan.Parameter {
	return []plan.Parameter{
		live("bgwriter_delay", "200ms", milliseconds("10ms", "10s")),
		live("bgwriter_lru_maxpages", "100", parameter.Integer(0, 100_000)),
		live("checkpoint_completion_target", "0.9", number(0, 1)),
		live("checkpoint_timeout", "5min", seconds("30s", "1d")),
		live("max_wal_size", "512MB", megabytes("64MB", "1TB")),
		live("min_wal_size", "80MB", megabytes("32MB", "1TB")),
		live("wal_compression", "off", parameter.OneOf("off", "pglz", "lz4", "zstd")),
	}
}

// observationParameters say what is counted, and what is logged. None of them has
// the text of a statement logged, which can hold a password.
func observationParameters() []plan.Parameter {
	return []plan.Parameter{
		live("log_autovacuum_min_duration", "10min", orElse("-1", milliseconds("0", "1d"))),
		live("log_checkpoints", "on", onOrOff()),
		live("log_lock_waits", "off", onOrOff()),
		live("log_temp_files", "-1", orElse("-1", kilobytes("0", "1TB"))),
		live("track_functions", "none", parameter.OneOf("none", "pl", "all")),
		live("track_io_timing", "off", onOrOff()),
	}
}

// sessionParameters are what a session begins with, and may change.
func sessionParameters() []plan.Parameter {
	return []plan.Parameter{
		live("TimeZone", "UTC", zone()),
		live("default_toast_compression", "pglz", parameter.OneOf("pglz", "lz4")),
		// A member that takes no writes runs nothing that is serializable.
		live("default_transaction_isolation", "read committed", parameter.OneOf("read uncommitted", "read committed", "repeatable read")),
	}
}

// live and fixed return a parameter with a default that may have a unit.
func live(name, usual string, values plan.Values) plan.Parameter {
	known := fixed(name, usual, values)
	known.IsLive = true
	return known
}

func fixed(name, usual string, values plan.Values) plan.Parameter {
	read, isAllowed := values.Read(usual)
	if !isAllowed {
		read = usual // which a test finds
	}
	return plan.Parameter{Name: name, Default: read, Values: values}
}

func onOrOff() plan.Values { return parameter.Switch("on", "off") }

// memory is an amount of it, in a number of base bytes; pages, kilobytes and
// megabytes are such amounts.
func memory(base int64, least, most string) plan.Values {
	return parameter.Quantity([]parameter.Unit{
		{Name: "B", Size: 1}, {Name: "kB", Size: 1 << 10}, {Name: "MB", Size: 1 << 20}, {Name: "GB", Size: 1 << 30}, {Name: "TB", Size: 1 << 40},
	}, base, false, least, most)
}

func pages(least, most string) plan.Values     { return memory(8<<10, least, most) }
func kilobytes(least, most string) plan.Values { return memory(1<<10, least, most) }
func megabytes(least, most string) plan.Values { return memory(1<<20, least, most) }

// duration is a time, in a number of base milliseconds; milliseconds and seconds
// are such times.
func duration(base int64, least, most string) plan.Values {
	const second = 1000
	return parameter.Quantity([]parameter.Unit{
		{Name: "ms", Size: 1}, {Name: "s", Size: second}, {Name: "min", Size: 60 * second}, {Name: "h", Size: 60 * 60 * second}, {Name: "d", Size: 24 * 60 * 60 * second},
	}, base, false, least, most)
}

func milliseconds(least, most string) plan.Values { return duration(1, least, most) }
func seconds(least, most string) plan.Values      { return duration(1000, least, most) }

// number is one with at most four decimals, and so few digits in all that the
// server, which shows six, shows it whole.
func number(least, most float64) plan.Values {
	plain := parameter.Number(least, most, 0)
	return plan.Values{
		Allowed: fmt.Sprintf("a number with at most 4 decimals and 6 digits, %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64)),
		Read: func(value string) (string, bool) {
			read, isAllowed := plain.Read(value)
			whole, decimals, _ := strings.Cut(read, ".")
			return read, isAllowed && len(decimals) <= 4 && len(whole)+len(decimals) <= 6
		},
	}
}

// orElse is one word, or one of the values.
func orElse(word string, values plan.Values) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("%s, or %s", word, values.Allowed),
		Read: func(value string) (string, bool) {
			if value == word {
				return word, true
			}
			return values.Read(value)
		},
	}
}

// zone is a time zone.
func zone() plan.Values {
	return plan.Values{
		Allowed: "UTC, or a place of the time zone database, as Asia/Shanghai",
		Read:    parameter.OneOf(strings.Fields(zones)...).Read,
	}
}

// LiveFiles returns the file that the configuration includes.
func (Engine) LiveFiles(live plan.Settings) map[string]string {
	return map[string]string{liveFile: render(lines(live))}
}

// lines are those that set parameters, in the order of their names.
func lines(settings plan.Settings) []setting {
	var lines []setting
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lines = append(lines, setting{name, settings[name]})
	}
	return lines
}
