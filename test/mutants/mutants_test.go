//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/test/sample"
)

// mutant is a bug, and what has to find it.
type mutant struct {
	// name says what is wrong, in a sentence.
	name string
	// reference is where it was found: in another operator, or in a rule of ours.
	reference string
	// file is the path of the file from the root of the repository; before stands in
	// it once, and after in its place.
	file, before, after string
	// killer are the tests that have to fail.
	killer killer
	// survives says why none does; empty if one has to.
	survives string
}

// level is what it takes to run tests.
type level string

const (
	levelUnit     level = "unit"
	levelSimulate level = "simulate"
	levelFaults   level = "faults"
	levelEngines  level = "engines"
)

// killer are tests of one package.
type killer struct {
	level level
	// packages is what go test is given, run which tests of it: all, if it is empty.
	packages, run string
}

// mutants are all that there are.
func mutants() []mutant {
	return slices.Concat(
		fenceMutants(), choiceMutants(),
		recordMutants(), followMutants(),
		topologyMutants(), ownershipMutants(), changeMutants(), reportMutants(),
		preconditionMutants(), liveReadMutants(), syncMutants(),
		writeMutants(), cacheMutants(), processMutants(),
		securityMutants(), renderMutants(),
		valueMutants(), positionMutants(), settingMutants(), volumeMutants(), roleMutants(),
		statementMutants(), answerMutants(), persistenceMutants(),
	)
}

// result is what became of a mutant.
type result struct {
	mutant
	// killedBy is the test that failed; empty if none did.
	killedBy string
	took     time.Duration
}

// TestEachBugIsFound tries the mutants one after the other: each is compiled anew.
func TestEachBugIsFound(t *testing.T) {
	chosen, err := choose()
	if err != nil {
		t.Fatal(err)
	}
	lab := newLaboratory(t)
	var results []result
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			began := time.Now()
			killedBy := lab.try(t, m)
			results = append(results, result{m, killedBy, time.Since(began)})
			switch {
			case killedBy == "" && m.survives == "":
				t.Errorf("nothing finds it: %s, in %s", m.reference, m.file)
			case killedBy != "" && m.survives != "":
				t.Errorf("%s finds it, though it is said that nothing does: %s", killedBy, m.survives)
			}
		})
	}
	table := tabulate(results)
	t.Log(table)
	if path := os.Getenv("MUTANTS_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// TestTheTableFitsTheSources runs nothing: it finds mutants of code that was changed.
func TestTheTableFitsTheSources(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants() {
		if _, err := m.mutate(); err != nil {
			t.Error(err)
		}
		if seen[m.name] || m.name == "" || m.reference == "" || m.killer.packages == "" {
			t.Errorf("%q (%s) is incomplete, or there twice", m.name, m.reference)
		}
		seen[m.name] = true
		if needsRun := m.killer.level != levelUnit; needsRun && m.killer.run == "" {
			t.Errorf("%q: of the level %s all tests are too many", m.name, m.killer.level)
		}
		if err := m.killer.exists(); err != nil {
			t.Errorf("%q: %v", m.name, err)
		}
	}
}

// exists fails if there is no test of the name that a killer runs: it would find
// nothing, and nobody would see why.
func (k killer) exists() error {
	if k.run == "" {
		return nil
	}
	name, _, _ := strings.Cut(k.run, "/")
	name = strings.Trim(name, "^$")
	files, err := filepath.Glob(filepath.Join("../..", k.packages, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file) // #nosec G304 -- of this file's tables
		if err != nil {
			return err
		}
		if strings.Contains(string(content), "\nfunc "+name+"(t *testing.T)") {
			return nil
		}
	}
	return fmt.Errorf("no test %s in %s", name, k.packages)
}

// choose returns the mutants of the levels that are asked for, or a share of them.
func choose() ([]mutant, error) {
	levels := strings.Fields(os.Getenv("MUTANTS_LEVELS"))
	if len(levels) == 0 {
		levels = []string{string(levelUnit), string(levelSimulate)}
	}
	for _, name := range levels {
		if !slices.Contains([]level{levelUnit, levelSimulate, levelFaults, levelEngines}, level(name)) {
			return nil, fmt.Errorf("MUTANTS_LEVELS names %q, which is no level", name)
		}
	}
	share, err := sample.Number("MUTANTS_SHARE", 1)
	if err != nil {
		return nil, err
	}
	seed, err := sample.Number("MUTANTS_SEED", 1)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(mutants(), func(m mutant) bool {
		return !slices.Contains(levels, string(m.killer.level)) || !sample.IsChosen(seed, share, m.name)
	}), nil
}

// tabulate has a line for each mutant, and the score.
func tabulate(results []result) string {
	var text strings.Builder
	killed, known := 0, 0
	fmt.Fprintf(&text, "\n%-86s %-26s %-66s %7s\n", "mutant", "reference", "killed by", "seconds")
	for _, r := range results {
		by := r.killedBy
		switch {
		case by != "":
			killed++
		case r.survives != "":
			known++
			by = "nothing: " + r.survives
		default:
			by = "NOTHING"
		}
		fmt.Fprintf(&text, "%-86s %-26s %-66s %7.1f\n", r.name, r.reference, by, r.took.Seconds())
	}
	fmt.Fprintf(&text, "%d of %d are killed, and of %d it is known that they can't be\n", killed, len(results)-known, known)
	return text.String()
}
