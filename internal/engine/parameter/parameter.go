// SPDX-License-Identifier: Apache-2.0

// Package parameter has the kinds of values that the parameters of engines have.
package parameter

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

// Integer is a whole number within bounds.
func Integer(least, most int64) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("a whole number, %d to %d", least, most),
		Read: func(value string) (string, bool) {
			number, err := strconv.ParseInt(value, 10, 64)
			if err != nil || number < least || number > most {
				return "", false
			}
			return strconv.FormatInt(number, 10), true
		},
	}
}

// Number is a number with an optional fraction, within bounds. It is shown with
// at least so many decimals, and with no zeros behind those.
func Number(least, most float64, decimals int) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("a number, %s to %s", plainNumber(least), plainNumber(most)),
		Read: func(value string) (string, bool) {
			number, err := strconv.ParseFloat(value, 64)
			isPlain := !strings.ContainsFunc(value, func(char rune) bool { return char != '.' && (char < '0' || char > '9') })
			if err != nil || !isPlain || number < least || number > most {
				return "", false
			}
			shortest := plainNumber(number)
			if padded := strconv.FormatFloat(number, 'f', decimals, 64); len(padded) > len(shortest) {
				return padded, true
			}
			return shortest, true
		},
	}
}

func plainNumber(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// Decimal is a number within bounds that has at most so many decimals, and is
// shown with exactly so many.
func Decimal(least, most int64, decimals int) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("a number with up to %d decimals, %d to %d", decimals, least, most),
		Read: func(value string) (string, bool) {
			whole, fraction, _ := strings.Cut(value, ".")
			number, err := strconv.ParseUint(whole, 10, 63)
			if err != nil || len(fraction) > decimals || strings.Trim(fraction, "0123456789") != "" {
				return "", false
			}
			fraction += strings.Repeat("0", decimals-len(fraction))
			isAboveMost := int64(number) == most && strings.Trim(fraction, "0") != ""
			if int64(number) < least || int64(number) > most || isAboveMost {
				return "", false
			}
			return strconv.FormatUint(number, 10) + "." + fraction, true
		},
	}
}

// Switch is on or off, and shown by the given words.
func Switch(on, off string) plan.Values {
	return plan.Values{
		Allowed: "on or off",
		Read: func(value string) (string, bool) {
			switch strings.ToLower(value) {
			case "on", "yes", "true", "1":
				return on, true
			case "off", "no", "false", "0":
				return off, true
			default:
				return "", false
			}
		},
	}
}

// OneOf is one of some words, in any case, and shown as they are given.
func OneOf(words ...string) plan.Values {
	return plan.Values{
		Allowed: "one of " + strings.Join(words, ", "),
		Read: func(value string) (string, bool) {
			at := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, value) })
			if at < 0 {
				return "", false
			}
			return words[at], true
		},
	}
}

// SetOf is some of the words, none or all, in any case and any order, separated
// by commas. They are shown in the order that is given here.
func SetOf(words ...string) plan.Values {
	return plan.Values{
		Allowed: "any of " + strings.Join(words, ", ") + "; separated by commas",
		Read: func(value string) (string, bool) {
			isIn := make([]bool, len(words))
			for word := range strings.SplitSeq(value, ",") {
				at := slices.IndexFunc(words, func(known string) bool { return strings.EqualFold(known, strings.TrimSpace(word)) })
				if at < 0 && value != "" {
					return "", false
				}
				if at >= 0 {
					isIn[at] = true
				}
			}
			var chosen []string
			for at, word := range words {
				if isIn[at] {
					chosen = append(chosen, word)
				}
			}
			return strings.Join(chosen, ","), true
		},
	}
}

// Offset is a time zone: the system's, which is shown by the given word, or an
// offset from UTC, +HH:MM or -HH:MM, so far to the west or the east at most.
func Offset(system string, west, east time.Duration) plan.Values {
	bounds := [2]string{showOffset(-west), showOffset(east)}
	return plan.Values{
		Allowed: fmt.Sprintf("%s, or an offset from UTC, %s to %s", system, bounds[0], bounds[1]),
		Read: func(value string) (string, bool) {
			if strings.EqualFold(value, system) {
				return system, true
			}
			offset, isOffset := readOffset(value)
			if !isOffset || offset < -west || offset > east {
				return "", false
			}
			return showOffset(offset), true
		},
	}
}

func showOffset(offset time.Duration) string {
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	return fmt.Sprintf("%s%02d:%02d", sign, int(offset.Hours()), int(offset.Minutes())%60)
}

// readOffset reads +H:MM, +HH:MM, and the same with a minus.
func readOffset(value string) (time.Duration, bool) {
	hours, minutes, _ := strings.Cut(strings.TrimLeft(value, "+-"), ":")
	if len(value) != 1+len(hours)+1+len(minutes) || len(hours) > 2 || len(minutes) != 2 {
		return 0, false
	}
	h, err := strconv.ParseUint(hours, 10, 8)
	m, minutesErr := strconv.ParseUint(minutes, 10, 8)
	if err != nil || minutesErr != nil || m > 59 {
		return 0, false
	}
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if value[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// Unit is what may stand behind a number, and how many of the smallest unit it
// means.
type Unit struct {
	Name string
	Size int64
}

// Quantity is a whole number with a unit, within bounds, and shown as a number
// of base units. Without a unit it means that number of base units. Units are
// written as they are given, or, where anyCase is true, in any case. A value
// that isn't a whole number of base units isn't allowed.
func Quantity(units []Unit, base int64, anyCase bool, least, most string) plan.Values {
	read := func(value string) (*big.Int, bool) { return readQuantity(units, base, anyCase, value) }
	lower, isLower := read(least)
	upper, isUpper := read(most)
	names := make([]string, 0, len(units))
	for _, unit := range units {
		names = append(names, unit.Name)
	}
	return plan.Values{
		Allowed: fmt.Sprintf("a whole number, with a unit of %s or without one; %s to %s", strings.Join(names, ", "), least, most),
		Read: func(value string) (string, bool) {
			number, isNumber := read(value)
			if !isNumber || !isLower || !isUpper || number.Cmp(lower) < 0 || number.Cmp(upper) > 0 {
				return "", false
			}
			return number.String(), true
		},
	}
}

// MultipleOf are those of the values that are whole multiples of a number of base
// units, which people call by the given name.
func MultipleOf(step int64, name string, values plan.Values) plan.Values {
	return plan.Values{
		Allowed: values.Allowed + ", a multiple of " + name,
		Read: func(value string) (string, bool) {
			shown, isAllowed := values.Read(value)
			number, isNumber := new(big.Int).SetString(shown, 10)
			if !isAllowed || !isNumber || new(big.Int).Rem(number, big.NewInt(step)).Sign() != 0 {
				return "", false
			}
			return shown, true
		},
	}
}

// readQuantity returns a quantity as a number of base units.
func readQuantity(units []Unit, base int64, anyCase bool, value string) (*big.Int, bool) {
	digits := strings.TrimLeft(value, "0123456789")
	number, isNumber := new(big.Int).SetString(strings.TrimSuffix(value, digits), 10)
	if !isNumber {
		return nil, false
	}
	if digits == "" {
		return number, true
	}
	at := slices.IndexFunc(units, func(unit Unit) bool {
		return unit.Name == digits || anyCase && strings.EqualFold(unit.Name, digits)
	})
	if at < 0 {
		return nil, false
	}
	number, rest := number.QuoRem(number.Mul(number, big.NewInt(units[at].Size)), big.NewInt(base), new(big.Int))
	return number, rest.Sign() == 0
}
