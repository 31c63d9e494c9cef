// SPDX-License-Identifier: Apache-2.0

package parameter

import (
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// kinds are values of each kind.
func kinds() map[string]plan.Values {
	units := []Unit{{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}}
	return map[string]plan.Values{
		"integer":          Integer(-2, 4294967295),
		"number":           Number(0, 31536000, 1),
		"decimal":          Decimal(1, 31536000, 6),
		"switch":           Switch("ON", "off"),
		"one of":           OneOf("READ-COMMITTED", "SERIALIZABLE"),
		"set":              SetOf("ANSI_QUOTES", "IGNORE_SPACE", "STRICT_ALL_TABLES"),
		"offset":           Offset("SYSTEM", 12*time.Hour+59*time.Minute, 14*time.Hour),
		"bytes":            Quantity(units, 1, true, "1K", "8G"),
		"pages":            Quantity([]Unit{{"kB", 1 << 10}, {"MB", 1 << 20}}, 8<<10, false, "8kB", "1024MB"),
		"multiple":         MultipleOf(4096, "4096", Quantity(units, 1, true, "8K", "1G")),
		"whole megabytes":  MultipleOf(1<<20, "1M", Quantity(units, 1, true, "1M", "1G")),
		"quantity of none": Quantity(units, 1, true, "x", "1G"),
	}
}

func TestAValueIsShownInOneFormOrNotAllowed(t *testing.T) {
	const refused = "\x00"
	for kind, rows := range map[string]map[string]string{
		"integer": {
			"7": "7", "-2": "-2", "4294967295": "4294967295", "+5": "5", "007": "7", "-0": "0",
			"": refused, "-3": refused, "4294967296": refused, "1.0": refused, "1e3": refused, "0x10": refused, "1_000": refused, "1 0": refused, "99999999999999999999": refused,
		},
		"number": {
			"0": "0.0", "1": "1.0", "1.50": "1.5", "0.125": "0.125", ".5": "0.5", "31536000": "31536000.0",
			"-1": refused, "31536000.1": refused, "1e3": refused, "inf": refused, "NaN": refused, "1,5": refused, "1.2.3": refused, "": refused, ".": refused,
		},
		"decimal": {
			"1": "1.000000", "1.": "1.000000", "2.5": "2.500000", "002.5": "2.500000", "12.345678": "12.345678", "31536000.000000": "31536000.000000",
			"0.999999": refused, "31536000.000001": refused, "2.1234567": refused, "-2": refused, "+2": refused, "1e3": refused, "1.-5": refused, "": refused, ".5": refused, "99999999999999999999": refused,
		},
		"switch": {
			"on": "ON", "TRUE": "ON", "1": "ON", "yes": "ON", "Off": "off", "0": "off", "false": "off", "no": "off",
			"": refused, "2": refused, "enabled": refused,
		},
		"one of": {"serializable": "SERIALIZABLE", "READ-COMMITTED": "READ-COMMITTED", "": refused, "READ COMMITTED": refused},
		"set": {
			"": "", "ansi_quotes": "ANSI_QUOTES", "STRICT_ALL_TABLES, ansi_quotes": "ANSI_QUOTES,STRICT_ALL_TABLES", "IGNORE_SPACE,IGNORE_SPACE": "IGNORE_SPACE",
			"ANSI": refused, "ANSI_QUOTES,": refused, ",": refused, " ": refused,
		},
		"offset": {
			"system": "SYSTEM", "+08:00": "+08:00", "+8:00": "+08:00", "-0:30": "-00:30", "-00:00": "+00:00", "-12:59": "-12:59", "+14:00": "+14:00",
			"": refused, "+": refused, "08:00": refused, "+14:01": refused, "-13:00": refused, "+08:60": refused, "+08:0": refused, "+8": refused, "++8:00": refused, "+-8:00": refused, "UTC": refused, "+008:00": refused, "+a8:00": refused,
		},
		"bytes": {
			"1024": "1024", "1k": "1024", "8G": "8589934592", "0002048": "2048",
			"1023": refused, "1KB": refused, "": refused, "K": refused, "-1K": refused, "1.5M": refused, "9G": refused, "1 K": refused, "99999999999999999999G": refused,
		},
		"pages":            {"1": "1", "8kB": "1", "1MB": "128", "131072": "131072", "9kB": refused, "1mb": refused, "131073": refused},
		"multiple":         {"8192": "8192", "12K": "12288", "1M": "1048576", "8193": refused, "4K": refused},
		"whole megabytes":  {"1M": "1048576", "1048577": refused, "1024K": "1048576"},
		"quantity of none": {"1M": refused},
	} {
		for value, want := range rows {
			got, isAllowed := kinds()[kind].Read(value)
			if isAllowed != (want != refused) || isAllowed && got != want || !isAllowed && got != "" {
				t.Errorf("%s: %q is read as %q, %t; want %q", kind, value, got, isAllowed, want)
			}
		}
	}
}

func TestWhatIsAllowedIsToldInWords(t *testing.T) {
	for kind, want := range map[string]string{
		"integer":         "a whole number, -2 to 4294967295",
		"number":          "a number, 0 to 31536000",
		"decimal":         "a number with up to 6 decimals, 1 to 31536000",
		"switch":          "on or off",
		"one of":          "one of READ-COMMITTED, SERIALIZABLE",
		"set":             "any of ANSI_QUOTES, IGNORE_SPACE, STRICT_ALL_TABLES; separated by commas",
		"offset":          "SYSTEM, or an offset from UTC, -12:59 to +14:00",
		"bytes":           "a whole number, with a unit of K, M, G or without one; 1K to 8G",
		"whole megabytes": "a whole number, with a unit of K, M, G or without one; 1M to 1G, a multiple of 1M",
	} {
		if got := kinds()[kind].Allowed; got != want {
			t.Errorf("%s: it says %q, want %q", kind, got, want)
		}
	}
}

// What is read is one line of plain characters, and is itself allowed and read
// as it is: no value says two things, or anything that isn't a value.
func FuzzAValueIsReadOnce(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "1.5", "on", "SYSTEM", "+08:00", "8K", "ansi_quotes, ignore_space", "1\nskip-grant-tables", "\x00", "é", "１", "1e9", strings.Repeat("9", 400)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for kind, values := range kinds() {
			shown, isAllowed := values.Read(value)
			if !isAllowed {
				if shown != "" {
					t.Errorf("%s: %q isn't allowed, and read as %q", kind, value, shown)
				}
				continue
			}
			if strings.ContainsFunc(shown, func(char rune) bool { return char <= ' ' || char > '~' || strings.ContainsRune("\"'`\\#;=", char) }) {
				t.Errorf("%s: %q is read as %q", kind, value, shown)
			}
			if again, isAllowed := values.Read(shown); !isAllowed || again != shown {
				t.Errorf("%s: %q is read as %q, and that as %q, %t", kind, value, shown, again, isAllowed)
			}
		}
	})
}
