// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// write adds a line about a request, or a part of it.
func write(t *testing.T, file *os.File, text string) {
	t.Helper()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func lineOf(user, verb, stage string) string {
	return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q}}`+"\n", stage, verb, user)
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// TestALogIsFollowedIntoItsNextFile has the log be replaced after lines that nobody
// has read yet.
func TestALogIsFollowedIntoItsNextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	first := create(t, path)
	write(t, first, lineOf("bench-a", "get", "ResponseComplete")) // before it is followed
	log, err := Follow(path, "bench-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Stop(); err != nil {
			t.Error(err)
		}
	}()

	write(t, first, lineOf("bench-a", "get", "ResponseComplete"))
	write(t, first, lineOf("other", "get", "ResponseComplete"))
	if got := log.Count("bench-a"); got != 1 {
		t.Errorf("%d requests are counted, want 1", got)
	}
	// A watch counts when it begins, and anything else when it has ended.
	write(t, first, lineOf("bench-a", "watch", "ResponseStarted")+lineOf("bench-a", "watch", "ResponseComplete")+lineOf("bench-a", "patch", "ResponseStarted"))
	line := lineOf("bench-b", "create", "ResponseComplete")
	write(t, first, line[:10])
	if got := log.Of("bench-a", 1); len(got) != 1 || got[0].Verb != "watch" {
		t.Errorf("got %v after the first one, want a watch", got)
	}
	write(t, first, line[10:])
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, first, lineOf("bench-a", "delete", "ResponseComplete"))
	second := create(t, path)
	write(t, second, lineOf("bench-a", "create", "ResponseComplete"))
	if got := log.Of("bench-a", 2); len(got) != 2 || got[0].Verb != "delete" || got[1].Verb != "create" {
		t.Errorf("got %v after the first two, want one of each file", got)
	}
	if got := log.Count("bench-b"); got != 1 {
		t.Errorf("%d requests of the other user are counted, want 1", got)
	}
	if got := len(log.Of("nobody", 5)); got != 0 {
		t.Errorf("%d requests of nobody are counted", got)
	}
}

func TestALogThatIsntThereIsSaid(t *testing.T) {
	if _, err := Follow(filepath.Join(t.TempDir(), "none"), ""); err == nil {
		t.Error("no error")
	}
}
