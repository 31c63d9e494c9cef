// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func open(t *testing.T) Cache {
	t.Helper()
	store, err := Open(filepath.Join(t.TempDir(), "cache"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func writing(content string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o644) }
}

func key(n int) string { return fmt.Sprintf("%016x", n) }

func TestOpeningChangesNothing(t *testing.T) {
	store := open(t)
	if _, err := os.Stat(store.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cache's folder exists before anything is put in it (%v)", err)
	}
}

func TestEnsureMakesOnce(t *testing.T) {
	store := open(t)
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			path, err := store.Ensure(t.Context(), "thing", key(1), func(path string) error {
				made.Add(1)
				return writing("whole")(path)
			})
			if err != nil {
				t.Error(err)
				return
			}
			// Whoever gets a path finds all of it there, whether it made it or waited.
			if content, err := os.ReadFile(path); err != nil || string(content) != "whole" {
				t.Errorf("entry is %q (%v)", content, err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestEnsureLeavesNothingOfWhatFailed(t *testing.T) {
	store, broken := open(t), errors.New("broken")
	_, err := store.Ensure(t.Context(), "thing", key(1), func(path string) error {
		return errors.Join(writing("half")(path), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error is %v", err)
	}
	if store.Has("thing", key(1)) {
		t.Error("a half entry is in the cache")
	}
	left, err := filepath.Glob(filepath.Join(store.Dir(), ".making-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q were left (%v)", left, err)
	}
}

func TestEnsureReplacesWhatAKilledProcessLeft(t *testing.T) {
	store := open(t)
	if err := os.MkdirAll(filepath.Join(store.Dir(), ".making-thing", "entry"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(t.Context(), "thing", key(1), writing("whole")); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureTellsWhomItWaitsForAndEndsWithItsContext(t *testing.T) {
	var told []string
	store, err := Open(t.TempDir(), func(name string) { told = append(told, name) })
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := store.Lock(t.Context(), "thing")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Ensure(ctx, "thing", key(1), writing("")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if !slices.Equal(told, []string{"thing"}) {
		t.Errorf("told of %q", told)
	}
}

// fill puts n entries into the cache, used one minute after the other, the last one last.
func fill(t *testing.T, store Cache, name string, n int) {
	t.Helper()
	if err := os.MkdirAll(store.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		path := store.Path(name, key(i))
		used := time.Now().Add(time.Duration(i-n) * time.Minute)
		if err := errors.Join(writing("")(path), os.Chtimes(path, used, used)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPruneRemovesWhatWasUsedLongestAgo(t *testing.T) {
	for sentence, row := range map[string]struct {
		before func(t *testing.T, store Cache)
		gone   []int
	}{
		"the oldest goes": {func(*testing.T, Cache) {}, []int{0}},
		"what was used since stays, and the next goes": {func(t *testing.T, store Cache) {
			if _, err := store.Ensure(t.Context(), "kube", key(0), nil); err != nil {
				t.Fatal(err)
			}
		}, []int{1}},
		"what a running cluster holds stays": {func(t *testing.T, store Cache) {
			held, err := Hold(store.Path("kube", key(0)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = held.Close() })
		}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			store := open(t)
			fill(t, store, "kube", kept)
			fill(t, store, "kube-proxy", kept)
			row.before(t, store)
			if _, err := store.Ensure(t.Context(), "kube", key(99), writing("")); err != nil {
				t.Fatal(err)
			}
			for i := range kept {
				if gone := !store.Has("kube", key(i)); gone != slices.Contains(row.gone, i) {
					t.Errorf("entry %d: gone %t", i, gone)
				}
				if !store.Has("kube-proxy", key(i)) {
					t.Errorf("an entry of another name, that begins with the same letters, is gone")
				}
			}
		})
	}
}

func TestKeyCoversAllThatGoesIn(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(writing("package a")(filepath.Join(dir, "a.go")), writing("text")(filepath.Join(dir, "a.txt"))); err != nil {
		t.Fatal(err)
	}
	isGo := func(path string) bool { return filepath.Ext(path) == ".go" }
	sum := func(add func(h Hash) error) string {
		result, err := Key(add)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	files := func(h Hash) error { return h.Files(isGo, dir) }
	before := sum(files)
	if err := writing("other text")(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if sum(files) != before {
		t.Error("a file that isn't wanted changes the key")
	}
	if err := writing("package b")(filepath.Join(dir, "a.go")); err != nil {
		t.Fatal(err)
	}
	if sum(files) == before {
		t.Error("a changed file doesn't change the key")
	}
	together := sum(func(h Hash) error { h.String("ab", "c"); return nil })
	if together == sum(func(h Hash) error { h.String("a", "bc"); return nil }) {
		t.Error("values that are parted otherwise give the same key")
	}
}
