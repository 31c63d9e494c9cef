//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Whose figures a result holds.
const (
	ours    = "operator"
	ourFoos = "Foo controller"
	twins   = "twin"
)

// result is one measurement, as it is kept: a line of a file of JSON objects, which
// test/bench/report reads.
type result struct {
	Time time.Time `json:"time"`
	// Benchmark is B1 to B8, as issue and docs count them.
	Benchmark string `json:"benchmark"`
	// Subject is whose figures they are.
	Subject string `json:"subject"`
	// Case is what was done, Size with how many resources, and Round counts
	// repetitions from 1.
	Case  string `json:"case"`
	Size  int    `json:"size"`
	Round int    `json:"round"`
	// Values are the figures by their names, which end in their units: what has none is
	// a number of things.
	Values map[string]float64 `json:"values"`
}

// record adds a result to the file of its benchmark.
func record(t *testing.T, r result) {
	t.Helper()
	r.Time = time.Now().UTC()
	t.Logf("%s %s, %s, %d, round %d: %v", r.Benchmark, r.Subject, r.Case, r.Size, r.Round, r.Values)
	if env.out == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLine(r.Benchmark+".jsonl", line); err != nil {
		t.Fatalf("keep a result: %v", err)
	}
}

func appendLine(name string, line []byte) error {
	if err := os.MkdirAll(env.out, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(env.out, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// add puts the requests of a tally, and what kinds they were, into values, each
// divided by a number of resources.
func (counted tally) add(values map[string]float64, by int) {
	for name, number := range map[string]int{"writes": counted.writes, "reads": counted.reads, "leases": counted.leases, "events": counted.events} {
		values[name] = float64(number) / float64(by)
	}
	for kind, number := range counted.by {
		values["of which "+kind] = float64(number) / float64(by)
	}
}

// TestMachine keeps what the figures were measured on.
func TestMachine(t *testing.T) {
	if env.out == "" {
		t.Fatal("BENCH_OUT isn't set: run make bench-quick")
	}
	server, err := env.kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]any{
		"time": time.Now().UTC(), "commit": valueOf("BENCH_COMMIT", "unknown"), "go": runtime.Version(), "kubernetes": server.GitVersion,
		"processor": fieldOf(t, "/proc/cpuinfo", "model name"), "cores": runtime.NumCPU(), "memory": fieldOf(t, "/proc/meminfo", "MemTotal"),
		"runtime": runtimeSettings(), "nodes": valueOf("BENCH_NODES", "played"), "sizes": env.sizes.String(),
	}
	line, err := json.Marshal(machine)
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLine("machine.jsonl", line); err != nil {
		t.Fatal(err)
	}
}

// fieldOf is the first value of a name in a file of names and values.
func fieldOf(t *testing.T, path, name string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if before, after, isPair := strings.Cut(line, ":"); isPair && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return "unknown"
}
