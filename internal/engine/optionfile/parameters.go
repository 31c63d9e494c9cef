// SPDX-License-Identifier: Apache-2.0

package optionfile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/engine/parameter"
	"coolops.cn/database-manager/internal/plan"
)

// The sizes that the units K, M and G mean.
const (
	Kibi = 1 << 10
	Mebi = 1 << 20
	Gibi = 1 << 30
)

// Bytes is a number of bytes within bounds, a multiple of a step, with the units
// that the servers know, and shown without one. No server rounds a multiple of
// its step.
func Bytes(step int64, least, most string) plan.Values {
	units := []parameter.Unit{{Name: "K", Size: Kibi}, {Name: "M", Size: Mebi}, {Name: "G", Size: Gibi}}
	values := parameter.Quantity(units, 1, true, least, most)
	switch {
	case step == 1:
		return values
	case step%Mebi == 0:
		return parameter.MultipleOf(step, strconv.FormatInt(step/Mebi, 10)+"M", values)
	default:
		return parameter.MultipleOf(step, strconv.FormatInt(step, 10), values)
	}
}

// Words are how a server shows that a variable is on or off.
type Words struct{ On, Off string }

// Switch is a variable that is on or off.
func (w Words) Switch() plan.Values { return parameter.Switch(w.On, w.Off) }

// Seconds is how long something may take that is waited for.
func Seconds(least int64) plan.Values { return parameter.Integer(least, 365*24*60*60) }

// Parameters returns a server's own parameters and those that MySQL and MariaDB
// have in common, ordered by name.
func Parameters(words Words, own ...plan.Parameter) []plan.Parameter {
	all := slices.Concat(own, sharedLive(words), sharedFixed(words))
	slices.SortFunc(all, func(a, b plan.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Live is a parameter that a running server takes, Fixed one that it is
// restarted for.
func Live(name, standard string, values plan.Values) plan.Parameter {
	return plan.Parameter{Name: name, IsLive: true, Default: standard, Values: values}
}

// Fixed is Live for a parameter that a server is restarted for.
func Fixed(name, standard string, values plan.Values) plan.Parameter {
	return plan.Parameter{Name: name, Default: standard, Values: values}
}

func sharedLive(words Words) []plan.Parameter {
	return []plan.Parameter{
		Live("connect_timeout", "10", Seconds(2)),
		Live("eq_range_index_dive_limit", "200", parameter.Integer(0, 1<<32-1)),
		Live("innodb_adaptive_hash_index", words.Off, words.Switch()),
		Live("innodb_deadlock_detect", words.On, words.Switch()),
		Live("innodb_lock_wait_timeout", "50", parameter.Integer(1, 100_000_000)),
		// No less than what innodb_max_dirty_pages_pct_lwm is by default, which the
		// servers would lower with it.
		Live("innodb_max_dirty_pages_pct", "90.000000", parameter.Decimal(10, 99, 6)),
		Live("innodb_stats_persistent_sample_pages", "20", parameter.Integer(1, 1_000_000)),
		Live("innodb_strict_mode", words.On, words.Switch()),
		Live("interactive_timeout", "28800", Seconds(1)),
		Live("join_buffer_size", "262144", Bytes(128, "128", "1G")),
		// Nothing is logged by it: it says which queries the status counts as slow.
		Live("long_query_time", "10.000000", parameter.Decimal(0, 365*24*60*60, 6)),
		// Fewer, and the operator and the probes had no room.
		Live("max_connections", "151", parameter.Integer(10, 10_000)),
		Live("max_heap_table_size", "16777216", Bytes(Kibi, "16K", "64G")),
		// The boot script needs one.
		Live("max_prepared_stmt_count", "16382", parameter.Integer(16, 1<<22)),
		Live("net_read_timeout", "30", Seconds(1)),
		Live("net_write_timeout", "60", Seconds(1)),
		Live("optimizer_search_depth", "62", parameter.Integer(0, 62)),
		Live("read_buffer_size", "131072", Bytes(4*Kibi, "8K", "1G")),
		Live("read_rnd_buffer_size", "262144", Bytes(1, "1", "1G")),
		Live("tmp_table_size", "16777216", Bytes(16*Kibi, "16K", "64G")),
		Live("wait_timeout", "28800", Seconds(1)),
	}
}

func sharedFixed(words Words) []plan.Parameter {
	return []plan.Parameter{
		// A running server resizes its pool by pieces, and rounds up.
		Fixed(BufferPool, "134217728", Bytes(128*Mebi, "128M", "1024G")),
		Fixed("innodb_ft_max_token_size", "84", parameter.Integer(10, 84)),
		Fixed("innodb_ft_min_token_size", "3", parameter.Integer(1, 9)),
		Fixed("innodb_rollback_on_timeout", words.Off, words.Switch()),
	}
}

// BufferPool is the parameter that the most is tuned.
const BufferPool = "innodb_buffer_pool_size"

// FromSettings are the options that set parameters, ordered by the parameters'
// names.
func FromSettings(settings plan.Settings) []Option {
	var options []Option
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		options = append(options, Option{Name: optionName(name), Value: settings[name]})
	}
	return options
}

// optionName is what a variable is called in a file.
func optionName(variable string) string {
	switch variable {
	case "time_zone":
		return "default-time-zone"
	case "tx_isolation":
		return "transaction-isolation"
	default:
		return strings.ReplaceAll(variable, "_", "-")
	}
}
