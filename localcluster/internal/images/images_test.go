// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

// newMaker returns a Maker with an empty cache, and the file that it writes its messages to.
func newMaker(t *testing.T, lock Lock) (*Maker, string) {
	t.Helper()
	store, err := cache.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := os.Create(filepath.Join(t.TempDir(), "messages"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = messages.Close() })
	return NewMaker(store, lock, progress.NewPrinter(messages)), messages.Name()
}

// allMade puts an entry of one package into the cache for everything that a Maker would make.
func allMade(t *testing.T, m *Maker) {
	t.Helper()
	all, err := m.entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		dir, name := m.cache.Path(e.name, e.key), strings.TrimPrefix(e.name, "image-")
		line := formatPackages(name, []Package{{"libc6", "2.41"}})
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, packagesFile), []byte(line), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCurrentReadsWhatIsMade(t *testing.T) {
	m, _ := newMaker(t, nil)
	allMade(t, m)
	lock, err := m.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{nodeName, "base-trixie", "base-bookworm", "base-sid", "redis-8.0", "mysql-9.7", "nginx"} {
		if len(lock[name]) != 1 {
			t.Errorf("%s has %v", name, lock[name])
		}
	}
}

func TestWhatDiffersFromTheLockFileIsSaidOnce(t *testing.T) {
	lock := Lock{nodeName: {{"libc6", "2.41"}}}
	for _, definition := range Images() {
		lock[definition.Name], lock[baseName(definition.Suite)] = []Package{{"libc6", "2.41"}}, []Package{{"libc6", "2.41"}}
	}
	delete(lock, "base-trixie")
	m, messages := newMaker(t, lock)
	allMade(t, m)
	if _, err := m.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(messages)
	if err != nil {
		t.Fatal(err)
	}
	// Every image has the base as its first layer.
	if count := strings.Count(string(content), "differs"); count != 1 || !strings.Contains(string(content), "image base-trixie differs") {
		t.Errorf("said is\n%s", content)
	}
}

func TestAChangeOfTheLockMakesAnew(t *testing.T) {
	before := Lock{"base-trixie": {{"libc6", "2.41"}}, "redis-8.0": {{"redis-server", "8.0.2"}}}
	onTrixie := []string{"image-base-trixie"}
	for _, definition := range Images() {
		if definition.Suite == "trixie" {
			onTrixie = append(onTrixie, "image-"+definition.Name)
		}
	}
	for sentence, row := range map[string]struct {
		after   Lock
		changed []string
	}{
		"the same lock changes nothing":     {before, nil},
		"an image's own package changes it": {Lock{"base-trixie": before["base-trixie"], "redis-8.0": {{"redis-server", "8.0.3"}}}, []string{"image-redis-8.0"}},
		"the base's change all on it":       {Lock{"base-trixie": {{"libc6", "2.42"}}, "redis-8.0": before["redis-8.0"]}, onTrixie},
		"the node's change the node only":   {Lock{"base-trixie": before["base-trixie"], "redis-8.0": before["redis-8.0"], nodeName: {{"runc", "2"}}}, []string{nodeName}},
	} {
		t.Run(sentence, func(t *testing.T) {
			one, _ := newMaker(t, before)
			two, _ := newMaker(t, row.after)
			a, errA := one.entries()
			b, errB := two.entries()
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{}
			for _, name := range row.changed {
				want[name] = true
			}
			for i := range a {
				if changed := a[i].key != b[i].key; changed != want[a[i].name] {
					t.Errorf("%s: changed %t", a[i].name, changed)
				}
			}
		})
	}
}

func TestAdoptKeepsWhatWasMadeForANewLock(t *testing.T) {
	fresh, _ := newMaker(t, nil)
	allMade(t, fresh)
	lock, err := fresh.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, _ := newMaker(t, lock)
	if has, err := m.Has(); err != nil || has {
		t.Fatalf("everything is there before (%v)", err)
	}
	if err := m.adopt(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	if has, err := m.Has(); err != nil || !has {
		t.Errorf("not everything is there (%v)", err)
	}
	if again, err := m.Current(t.Context()); err != nil || again.String() != lock.String() {
		t.Errorf("its packages are now\n%s (%v)", again, err)
	}
}
