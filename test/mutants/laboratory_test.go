//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// root is the repository, from this package's folder, in which tests run.
	root = "../.."
	// goldenTests compare what is rendered with a folder of files, and see any change.
	goldenTests = "TestTheFilesOfAMemberAreThoseInTestdata|TestAFixedParameterChangesTheConfigurationAlone|" +
		"TestAFixedParameterIsInAFileThatAMemberIsRestartedFor|TestWhatIsRenderedIsInTestdata|TestWhereMembersRunIsInTestdata"
	// simulator is the test that is a level of its own.
	simulator = "TestNoFaultLosesAnAcknowledgedCommit"
	// simulatedStates is as many as find what there is to find in seconds.
	simulatedStates = "20000"
)

// laboratory is where mutants are tried.
type laboratory struct {
	root string
	// isSound are the tests that were seen to pass without any mutant.
	isSound map[killer]bool
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return &laboratory{root: absolute, isSound: map[killer]bool{}}
}

// mutate returns the file's content with the bug in it.
func (m mutant) mutate() (string, error) {
	content, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("%q: %w", m.name, err)
	}
	if count := strings.Count(string(content), m.before); count != 1 || m.before == m.after {
		return "", fmt.Errorf("%q: %s has its piece %d times, and not once; the code was changed, and the mutant has to follow:\n%s", m.name, m.file, count, m.before)
	}
	return strings.Replace(string(content), m.before, m.after, 1), nil
}

// try runs the tests that have to find a mutant, and returns which one did; empty if
// none did.
func (l *laboratory) try(t *testing.T, m mutant) string {
	t.Helper()
	if !l.isSound[m.killer] {
		if o := l.test(t, m.killer, ""); !o.isGood() {
			t.Fatalf("the tests don't pass without it:\n%s", o.printed)
		}
		l.isSound[m.killer] = true
	}
	content, err := m.mutate()
	if err != nil {
		t.Fatal(err)
	}
	o := l.test(t, m.killer, l.overlay(t, m.file, content))
	if o.isGood() {
		return ""
	}
	name := o.firstFailure()
	if name == "" {
		t.Fatalf("it can't be tried, as it doesn't compile, for instance:\n%s", o.printed)
	}
	return name
}

// overlay writes the file by which the go command takes the content for the file's.
func (l *laboratory) overlay(t *testing.T, file, content string) string {
	t.Helper()
	mutated := filepath.Join(t.TempDir(), filepath.Base(file))
	replacements, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(l.root, file): mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	for path, written := range map[string]string{mutated: content, overlay: string(replacements)} {
		if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// outcome is what a command printed, and how it ended.
type outcome struct {
	printed string
	err     error
}

func (o outcome) isGood() bool { return o.err == nil }

// failurePattern is the line of a test that failed. Those of its parts are indented.
var failurePattern = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// firstFailure is the test that failed first, or how else the tests were seen to
// fail; empty if they weren't, as where nothing compiles.
func (o outcome) firstFailure() string {
	if strings.Contains(o.printed, "[build failed]") || strings.Contains(o.printed, "[setup failed]") {
		return ""
	}
	if found := failurePattern.FindStringSubmatch(o.printed); found != nil {
		return found[1]
	}
	switch {
	case errors.Is(o.err, context.DeadlineExceeded), strings.Contains(o.printed, "panic: test timed out"):
		return "a test that doesn't end"
	case strings.Contains(o.printed, "\npanic: "), strings.HasPrefix(o.printed, "panic: "), strings.Contains(o.printed, "fatal error: "):
		return "a panic"
	default:
		return ""
	}
}

// limit is how long the tests may take.
func (k killer) limit() time.Duration {
	switch k.level {
	case levelFaults:
		return time.Hour
	case levelEngines:
		return 20 * time.Minute
	case levelSimulate, levelUnit:
	}
	return 5 * time.Minute
}

// test runs tests, with an overlay if it isn't empty. Without one the go command may
// answer from what it remembers.
func (l *laboratory) test(t *testing.T, k killer, overlay string) outcome {
	t.Helper()
	arguments := []string{"test", "-vet=off", "-failfast", "-timeout=" + k.limit().String()}
	skipped := goldenTests
	var environment []string
	switch k.level {
	case levelSimulate:
		environment = append(environment, "STATES="+simulatedStates)
	case levelFaults:
		operator, o := l.buildOperator(t, overlay)
		if !o.isGood() {
			return o
		}
		environment = append(environment, "FAULTS_OPERATOR="+operator, "FAULTS_TABLE="+filepath.Join(t.TempDir(), "table"))
		arguments = append(arguments, "-tags=faults", "-parallel=8", "-count=1")
	case levelEngines:
		arguments = append(arguments, "-tags=realengine")
	case levelUnit:
		skipped += "|" + simulator
	}
	arguments = append(arguments, "-skip=^("+skipped+")$")
	if overlay != "" {
		arguments = append(arguments, "-overlay="+overlay, "-count=1")
	}
	if k.run != "" {
		arguments = append(arguments, "-run="+k.run)
	}
	return l.run(t, k.limit()+5*time.Minute, environment, append(arguments, k.packages)...)
}

// buildOperator builds the binary that the fault tests run.
func (l *laboratory) buildOperator(t *testing.T, overlay string) (string, outcome) {
	t.Helper()
	operator := filepath.Join(t.TempDir(), "database-manager")
	arguments := []string{"build", "-tags=played", "-o", operator}
	if overlay != "" {
		arguments = append(arguments, "-overlay="+overlay)
	}
	o := l.run(t, 10*time.Minute, nil, append(arguments, "./cmd/database-manager")...)
	if !o.isGood() {
		o.printed = "[build failed]\n" + o.printed
	}
	return operator, o
}

// run runs the go command, and ends it, with all that it has started, when it takes
// too long.
func (l *laboratory) run(t *testing.T, limit time.Duration, environment []string, arguments ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, "go", arguments...) // #nosec G204 -- of this file's tables
	command.Dir = l.root
	command.Env = append(os.Environ(), environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	printed, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return outcome{string(printed), err}
}

// unit, inPlan and inController are tests that need nothing but Go.
func unit(packages string) killer { return killer{levelUnit, packages, ""} }
func inPlan() killer              { return unit("./internal/plan/") }
func inController() killer        { return unit("./internal/controller/databasemanager/") }

// inSimulator are the played decisions, inFaults tests with a real API server, and
// engines with real database servers.
func inSimulator() killer {
	return killer{levelSimulate, "./internal/plan/", "^" + simulator + "$"}
}
func inFaults(run string) killer          { return killer{levelFaults, "./test/faults/", run} }
func engines(packages, run string) killer { return killer{levelEngines, packages, run} }
