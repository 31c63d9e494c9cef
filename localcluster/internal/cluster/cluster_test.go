// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for sentence, row := range map[string]struct {
		name  string
		valid bool
	}{
		"a word is one":                          {"dev", true},
		"a letter is one":                        {"a", true},
		"dashes and digits may be in it":         {"e2e-17", true},
		"thirty characters are the most":         {strings.Repeat("a", 30), true},
		"thirty-one are too many":                {strings.Repeat("a", 31), false},
		"none are too few":                       {"", false},
		"upper case isn't":                       {"Dev", false},
		"a dash at its end isn't":                {"dev-", false},
		"a dash at its beginning isn't":          {"-dev", false},
		"it is no way out of the state folder":   {"..", false},
		"nor a path":                             {"a/b", false},
		"an underscore isn't: it is a DNS label": {"a_b", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := Open(row.name, t.TempDir()); (err == nil) != row.valid {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestStateFolder(t *testing.T) {
	for sentence, row := range map[string]struct{ base, xdg, home, want string }{
		"the folder named is taken":                   {"/base", "/xdg", "/home", "/base/dev"},
		"without one, it is that of XDG_STATE_HOME":   {"", "/xdg", "/home", "/xdg/localcluster/dev"},
		"without either, it is in the user's own":     {"", "", "/home", "/home/.local/state/localcluster/dev"},
		"a name that ends with a slash is the same":   {"/base/", "", "", "/base/dev"},
		"without any there is an error, and no guess": {"", "", "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", row.xdg)
			t.Setenv("HOME", row.home)
			c, err := Open("dev", row.base)
			if row.want == "" {
				if err == nil {
					t.Errorf("it is %s", c.Dir)
				}
				return
			}
			if err != nil || c.Dir != row.want {
				t.Errorf("it is %v (%v)", c, err)
			}
		})
	}
}

func open(t *testing.T) *Cluster {
	t.Helper()
	c, err := Open("unit", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCgroupsOfOneNameInTwoPlacesDiffer(t *testing.T) {
	a, b := open(t), open(t)
	if a.Cgroup() == b.Cgroup() {
		t.Errorf("both are %s", a.Cgroup())
	}
	if !strings.Contains(a.Cgroup(), a.Name) {
		t.Errorf("%s doesn't carry the cluster's name", a.Cgroup())
	}
}

func TestRunningIsWhoHasTheLock(t *testing.T) {
	c := open(t)
	expect := func(want bool) {
		t.Helper()
		if running, err := c.Running(); err != nil || running != want {
			t.Errorf("running is %t (%v), want %t", running, err, want)
		}
	}
	expect(false) // there is no folder
	unlock, err := c.lock(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	expect(false)
	alive, err := c.takeAlive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.takeAlive(ctx); err == nil {
		t.Error("two processes live")
	}
	if err := alive.Close(); err != nil {
		t.Fatal(err)
	}
	expect(false) // the file is there, as after a crash
}

func TestLockTakesTheFolderThatIsThereNow(t *testing.T) {
	c := open(t)
	first, err := c.lock(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.lock(t.Context(), func(string, ...any) {
		// The first was a `down`: it ends by removing the folder.
		if err := os.RemoveAll(c.Dir); err != nil {
			t.Error(err)
		}
		first()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	if _, err := os.Stat(c.path("lock")); err != nil {
		t.Errorf("the lock is on a file that is gone: %v", err)
	}
}

func TestLockSaysThatItWaitsAndEndsWithItsContext(t *testing.T) {
	c := open(t)
	unlock, err := c.lock(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	_, err = c.lock(ctx, func(string, ...any) { told++; cancel() })
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("error is %v, told %d times", err, told)
	}
}

func TestDownOfWhatNeverWasIsHarmless(t *testing.T) {
	c := open(t)
	if err := errors.Join(c.Down(t.Context(), io.Discard), c.Down(t.Context(), io.Discard)); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(c.Dir)); err != nil || len(entries) > 0 {
		t.Errorf("it left %v (%v)", entries, err)
	}
}

func TestMountsBelow(t *testing.T) {
	const mounts = `proc /proc proc rw 0 0
tmpfs /state/dev tmpfs rw 0 0
tmpfs /state/dev/a tmpfs rw 0 0
tmpfs /state/dev/a\040b/c tmpfs rw 0 0
tmpfs /state/dev-2/a tmpfs rw 0 0
`
	if got, want := mountsBelow(mounts, "/state/dev"), []string{"/state/dev/a", "/state/dev/a b/c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorsNameTheNextCommand(t *testing.T) {
	c := open(t)
	if _, err := c.runningConfig(); err == nil || !strings.Contains(err.Error(), "localcluster up --name unit") {
		t.Errorf("absent: %v", err)
	}
	if err := errors.Join(os.MkdirAll(c.Dir, 0o700), c.writeConfig(Config{Port: 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := c.runningConfig(); err == nil || !strings.Contains(err.Error(), "localcluster up --name unit") {
		t.Errorf("stopped: %v", err)
	}
	if err := os.WriteFile(c.path("cluster.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Config(); err == nil || !strings.Contains(err.Error(), "localcluster down --name unit") {
		t.Errorf("broken: %v", err)
	}
}

func TestLogs(t *testing.T) {
	c := open(t)
	path := filepath.Join(c.LogDir(), "kubelet.log")
	if err := errors.Join(os.MkdirAll(c.LogDir(), 0o700), os.WriteFile(path, []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.WriteLog(t.Context(), "kubelet", false, &text); err != nil || text.String() != "one\n" {
		t.Errorf("printed %q (%v)", text.String(), err)
	}
	if err := c.WriteLog(t.Context(), "../lock", false, &text); err == nil || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("an unknown component: %v", err)
	}
}

func TestFollowPrintsWhatIsAddedUntilTheLogIsRemoved(t *testing.T) {
	c := open(t)
	path := filepath.Join(c.LogDir(), "kubelet.log")
	if err := errors.Join(os.MkdirAll(c.LogDir(), 0o700), os.WriteFile(path, []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// Each time that something arrives, the log changes.
	steps := []func() error{
		func() error { return os.WriteFile(path, []byte("one\ntwo\n"), 0o600) },
		func() error { return os.Remove(path) },
	}
	out := writerFunc(func(printed []byte) (int, error) {
		step := steps[0]
		steps = steps[1:]
		return len(printed), step()
	})
	if err := c.WriteLog(t.Context(), "kubelet", true, out); err != nil {
		t.Fatal(err)
	}
	if len(steps) > 0 {
		t.Errorf("it ended %d lines early", len(steps))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(content []byte) (int, error) { return f(content) }
