// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// result is one measurement, as test/bench has written it.
type result struct {
	Benchmark string             `json:"benchmark"`
	Subject   string             `json:"subject"`
	Case      string             `json:"case"`
	Size      int                `json:"size"`
	Round     int                `json:"round"`
	Values    map[string]float64 `json:"values"`
}

// results are those of one run, and what it ran on.
type results struct {
	all     []result
	machine []map[string]any
}

// read reads all files of a folder.
func read(folder string) (results, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return results{}, err
	}
	if len(files) == 0 {
		return results{}, fmt.Errorf("%s has no results: run make bench-quick", folder)
	}
	var raw results
	for _, path := range files {
		into := func(line []byte) error {
			var one result
			err := json.Unmarshal(line, &one)
			raw.all = append(raw.all, one)
			return err
		}
		if filepath.Base(path) == "machine.jsonl" {
			into = func(line []byte) error {
				var one map[string]any
				err := json.Unmarshal(line, &one)
				raw.machine = append(raw.machine, one)
				return err
			}
		}
		if err := eachLine(path, into); err != nil {
			return results{}, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return raw, nil
}

func eachLine(path string, do func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for err == nil && lines.Scan() {
		err = do(lines.Bytes())
	}
	return errors.Join(err, lines.Err(), file.Close())
}

// series are the rounds of one thing that was measured.
type series struct {
	subject, what string
	size          int
	rounds        []result
}

// of are the series of a benchmark, in the order in which they were measured, then
// by size.
func (r results) of(benchmark string) []series {
	var all []series
	for _, one := range r.all {
		if one.Benchmark != benchmark {
			continue
		}
		at := slices.IndexFunc(all, func(s series) bool { return s.subject == one.Subject && s.what == one.Case && s.size == one.Size })
		if at < 0 {
			at = len(all)
			all = append(all, series{subject: one.Subject, what: one.Case, size: one.Size})
		}
		all[at].rounds = append(all[at].rounds, one)
	}
	first := map[string]int{}
	for at, s := range all {
		if _, isKnown := first[s.what]; !isKnown {
			first[s.what] = at
		}
	}
	slices.SortStableFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(first[a.what], first[b.what]), cmp.Compare(a.subject, b.subject), cmp.Compare(a.size, b.size))
	})
	return all
}

// confidence is how sure an interval is.
const confidence = 0.95

// figure is a median, with the interval in which it lies with confidence; from fewer
// than six rounds, with all that was measured.
type figure struct {
	median, low, high float64
	isRange           bool
}

// figure is that of a value; false if it wasn't measured.
func (s series) figure(value string) (figure, bool) {
	var values []float64
	for _, round := range s.rounds {
		if measured, exists := round.Values[value]; exists {
			values = append(values, measured)
		}
	}
	if len(values) == 0 {
		return figure{}, false
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	summary := benchmath.AssumeNothing.Summary(sample, confidence)
	if math.IsInf(summary.Lo, 0) || math.IsInf(summary.Hi, 0) {
		return figure{summary.Center, slices.Min(values), slices.Max(values), true}, true
	}
	return figure{summary.Center, summary.Lo, summary.Hi, false}, true
}

func (f figure) String() string {
	middle, low, high := number(f.median), number(f.low), number(f.high)
	switch {
	case low == high:
		return middle
	case f.isRange:
		return fmt.Sprintf("%s (%s … %s)", middle, low, high)
	default:
		return fmt.Sprintf("%s [%s … %s]", middle, low, high)
	}
}

// number has three digits or so that matter.
func number(value float64) string {
	digits := 2
	switch size := math.Abs(value); {
	case size >= 100:
		digits = 0
	case size >= 10:
		digits = 1
	}
	text := fmt.Sprintf("%.*f", digits, value)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
