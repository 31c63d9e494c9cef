// SPDX-License-Identifier: Apache-2.0

// Package parameter has the kinds of values that the parameters of engines have.
package parameter

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// Integer is a whole number within bounds.
func Integer(least, most int64) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("a whole number, %d to %d", least, most),
		Read: func(value string) (string, bool) {
			number, err := strconv.ParseInt(value, 10, 64)
			return strconv.FormatInt(number, 10), err == nil && number >= least && number <= most
		},
	}
}

// Number is a number with an optional fraction, within bounds. It is shown with
// at least so many decimals, and with no zeros behind those.
func Number(least, most float64, decimals int) plan.Values {
	return plan.Values{
		Allowed: fmt.Sprintf("a number, %v to %v", least, most),
		Read: func(value string) (string, bool) {
			number, err := strconv.ParseFloat(value, 64)
			isPlain := !strings.ContainsFunc(value, func(char rune) bool { return char != '.' && (char < '0' || char > '9') })
			if err != nil || !isPlain || number < least || number > most {
				return "", false
			}
			shortest := strconv.FormatFloat(number, 'f', -1, 64)
			if padded := strconv.FormatFloat(number, 'f', decimals, 64); len(padded) > len(shortest) {
				return padded, true
			}
			return shortest, true
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
