// SPDX-License-Identifier: Apache-2.0

// Package sample chooses which of many cases a run of tests plays, by a seed that
// repeats it.
package sample

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
)

// IsChosen tells whether a case is one of those that are played, of share cases about
// one. Another seed chooses others.
func IsChosen(seed, share uint64, name string) bool {
	digest := fnv.New64a()
	_, _ = fmt.Fprintf(digest, "%d %s", seed, name) // it never fails
	return digest.Sum64()%share == 0
}

// Number reads a number from an environment variable; otherwise is what counts without
// it. It fails if that isn't a number greater than 0.
func Number(variable string, otherwise uint64) (uint64, error) {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%s is %q, and no number greater than 0", variable, text)
	}
	return number, nil
}
