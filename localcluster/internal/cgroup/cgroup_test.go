// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// tree makes a folder with files, as a kernel's cgroup file system has them.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestCreateFillsCpusetDownToTheLastGroup(t *testing.T) {
	cpuset := tree(t, map[string]string{"cpuset.cpus": "0-1", "cpuset.mems": "0"})
	memory := tree(t, nil)
	if err := create([]mounted{{path: cpuset}, {path: memory}}, "cluster/node"); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"cluster", "cluster/node"} {
		if cpus, mems := read(t, filepath.Join(cpuset, group, "cpuset.cpus")), read(t, filepath.Join(cpuset, group, "cpuset.mems")); cpus != "0-1" || mems != "0" {
			t.Errorf("%s has cpus %q and mems %q", group, cpus, mems)
		}
		if _, err := os.Stat(filepath.Join(memory, group)); err != nil {
			t.Error(err)
		}
	}
}

func TestCreateHandsDownOnlyWhatIsMissing(t *testing.T) {
	const untouched = "unwritten"
	for sentence, row := range map[string]struct{ available, handedDown, written string }{
		"a machine that hands down everything is left as it is":  {"cpu memory pids", "cpu memory pids", untouched},
		"what is missing is added":                               {"cpu memory pids", "cpu memory", "+pids"},
		"controllers that pods don't need stay as they are":      {"cpu rdma misc", "cpu", untouched},
		"without controllers, beside v1, there is nothing to do": {"", "", untouched},
	} {
		t.Run(sentence, func(t *testing.T) {
			root := tree(t, map[string]string{"cgroup.controllers": row.available, "cgroup.subtree_control": row.handedDown})
			if err := create([]mounted{{root, true}}, "cluster"); err != nil {
				t.Fatal(err)
			}
			want := row.written
			if want == untouched {
				want = row.handedDown
			}
			if got := read(t, filepath.Join(root, "cgroup.subtree_control")); got != want {
				t.Errorf("subtree_control is %q, want %q", got, want)
			}
		})
	}
}

func TestCreateTwiceIsHarmless(t *testing.T) {
	all := []mounted{{path: tree(t, nil)}}
	if err := errors.Join(create(all, "cluster/node"), create(all, "cluster/node")); err != nil {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	root := tree(t, map[string]string{"cluster-2/busy": ""})
	all := []mounted{{path: root}}
	if err := errors.Join(create(all, "cluster/node/pod"), remove(all, "cluster", 0), remove(all, "cluster", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "cluster")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(root, "cluster-2")); err != nil {
		t.Error("another cluster's is gone")
	}
	// A folder with a file can't be removed, as a group with a process can't.
	if err := remove(all, "cluster-2", 50*time.Millisecond); err == nil {
		t.Error("a busy group is no error")
	}
}
