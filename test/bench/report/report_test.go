// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folderOf writes raw results, a line each.
func folderOf(t *testing.T, lines ...string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "B.jsonl"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func measured(benchmark, what string, size int, values string) string {
	return fmt.Sprintf(`{"benchmark":%q,"subject":"operator","case":%q,"size":%d,"round":1,"values":{%s}}`, benchmark, what, size, values)
}

func TestAMedianHasAnIntervalFromSixRoundsOn(t *testing.T) {
	for rounds, want := range map[int]string{1: "1", 5: "3 (1 … 5)", 6: "3.5 [1 … 6]", 9: "5 [2 … 8]"} {
		var s series
		for round := 1; round <= rounds; round++ {
			s.rounds = append(s.rounds, result{Values: map[string]float64{"x": float64(round)}})
		}
		if got, isMeasured := s.figure("x"); !isMeasured || got.String() != want {
			t.Errorf("%d rounds: got %s, want %s", rounds, got, want)
		}
		if _, isMeasured := s.figure("y"); isMeasured {
			t.Errorf("%d rounds: what wasn't measured has a figure", rounds)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.004: "0", 1: "1", 1.234: "1.23", 12.34: "12.3", 1234.5: "1234", -0.001: "0", 100: "100"} {
		if got := number(value); got != want {
			t.Errorf("%v: got %s, want %s", value, got, want)
		}
	}
}

func TestAPageGetsTablesAndPlotsBetweenItsMarkers(t *testing.T) {
	raw := folderOf(t,
		measured("B4", "databases in memory", 0, `"live heap MB":10,"Pss MB":20`),
		measured("B4", "databases in memory", 100, `"live heap MB":12,"Pss MB":24`),
		measured("B2", "databases at rest", 0, `"CPU ms per s":1`),
		measured("B2", "databases at rest", 100, `"CPU ms per s":11`),
		measured("B1", "databases created, of so many", 100, `"writes":17,"writes expected":14,"reads":8`))
	page, pictures := filepath.Join(t.TempDir(), "page.md"), filepath.Join(t.TempDir(), "pictures")
	if err := os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A second run gives the same.
	for range 2 {
		if err := run([]string{raw, page, pictures}); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, part := range []string{
		"before\n" + begin, end + "after\n", "| operator | databases created, of so many | 100 | 17 | 14 | 8 |", "| 100 | 20 | 40 | 100 |", "requests.svg", "memory.svg", "rest.svg",
	} {
		if strings.Count(text, part) != 1 {
			t.Errorf("%d times %q in\n%s", strings.Count(text, part), part, text)
		}
	}
	if strings.Contains(text, "old") || strings.Contains(text, "cpu.svg") {
		t.Errorf("got what was there before, or wasn't measured, in\n%s", text)
	}
	if drawn, err := os.ReadFile(filepath.Join(pictures, "memory.svg")); err != nil || !strings.Contains(string(drawn), "<svg") {
		t.Errorf("memory.svg: %v", err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	for sentence, arguments := range map[string][]string{
		"no folder":        nil,
		"an empty folder":  {t.TempDir()},
		"no page":          {folderOf(t, measured("B4", "x", 0, "")), filepath.Join(t.TempDir(), "none"), t.TempDir()},
		"not a result":     {folderOf(t, "{")},
		"too many of them": {"a", "b"},
	} {
		if err := run(arguments); err == nil {
			t.Errorf("%s: no error", sentence)
		}
	}
	if _, err := between([]byte("no markers"), "text"); err == nil {
		t.Error("a page without markers: no error")
	}
}
