// SPDX-License-Identifier: Apache-2.0

package images

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func parse(t *testing.T, content string) (Lock, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images.lock")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadLock(path)
}

func TestReadLock(t *testing.T) {
	for sentence, row := range map[string]struct {
		content string
		want    Lock
		refused bool
	}{
		"an empty file locks nothing":          {"", Lock{}, false},
		"comments and empty lines say nothing": {"# a\n\n  # b\n", Lock{}, false},
		"each line locks a package": {
			"a libc6 2.41-12\nb libc6 2.40\na zlib 1:1.3\n",
			Lock{"a": {{"libc6", "2.41-12"}, {"zlib", "1:1.3"}}, "b": {{"libc6", "2.40"}}},
			false,
		},
		"a line without a version is refused":      {"a libc6\n", nil, true},
		"a line of more than a version is refused": {"a libc6 1 2\n", nil, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			lock, err := parse(t, row.content)
			if (err != nil) != row.refused {
				t.Fatalf("error is %v", err)
			}
			if !maps.EqualFunc(lock, row.want, slices.Equal[[]Package]) {
				t.Errorf("got %v, want %v", lock, row.want)
			}
		})
	}
	t.Run("a missing file locks nothing", func(t *testing.T) {
		if lock, err := ReadLock(filepath.Join(t.TempDir(), "none")); err != nil || len(lock) != 0 {
			t.Errorf("got %v (%v)", lock, err)
		}
	})
}

func TestLockFileOfTheRepository(t *testing.T) {
	const path = "../../images.lock"
	lock, err := ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("it is written as it would be written anew", func(t *testing.T) {
		content, err := os.ReadFile(path)
		if err != nil || lock.String() != string(content) {
			t.Errorf("it was changed by hand, or its form has changed (%v)", err)
		}
	})
	t.Run("it locks everything that is made", func(t *testing.T) {
		want := map[string]bool{nodeName: true}
		for _, definition := range Images() {
			want[definition.Name], want[baseName(definition.Suite)] = true, true
		}
		if got, want := slices.Sorted(maps.Keys(lock)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
			t.Errorf("it locks %q, made are %q", got, want)
		}
	})
	t.Run("it keeps the definitions' versions", func(t *testing.T) {
		for _, definition := range Images() {
			if err := definition.check(lock[definition.Name]); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDifferences(t *testing.T) {
	lock := Lock{"a": {{"libc6", "2.41"}, {"zlib", "1.3"}}}
	for sentence, row := range map[string]struct {
		unpacked []Package
		want     []string
	}{
		"the same is no difference":        {[]Package{{"libc6", "2.41"}, {"zlib", "1.3"}}, nil},
		"another version is named":         {[]Package{{"libc6", "2.42"}, {"zlib", "1.3"}}, []string{"libc6 2.42 (locked: 2.41)"}},
		"what came in addition is named":   {[]Package{{"libc6", "2.41"}, {"zlib", "1.3"}, {"xz", "5"}}, []string{"xz 5 (not locked)"}},
		"what is no longer there is named": {[]Package{{"libc6", "2.41"}}, []string{"zlib is absent (locked: 1.3)"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := lock.Differences("a", row.unpacked); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
