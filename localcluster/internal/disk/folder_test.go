// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mib = 1 << 20

var errKilled = errors.New("killed")

// machine is what the programs that a Folder runs do to a machine.
type machine struct {
	dir string
	// device is what is mounted, by the path of the mount; each has a size of its own and one of its file system.
	devices map[string]*device
	// steps is how many programs may still run; one less than 0 means any.
	steps int
}

type device struct {
	name, file           string
	capacity, fileSystem int64
}

func newMachine(t *testing.T) (*machine, *Folder) {
	t.Helper()
	m := &machine{dir: t.TempDir(), devices: map[string]*device{}, steps: -1}
	return m, &Folder{path: m.dir, loopControl: m.dir, run: m.run, mounts: m.mounts}
}

func (m *machine) run(_ context.Context, program string, args ...string) error {
	if m.steps == 0 {
		return errKilled
	}
	m.steps--
	last := args[len(args)-1]
	switch program {
	case "mkfs.xfs":
		return appendTo(last, "XFS")
	case "mount":
		return m.mount(args[len(args)-2], last)
	case "umount":
		return m.unmount(last)
	case "losetup":
		for _, d := range m.devices {
			if d.name == last {
				d.capacity = size(d.file)
				return nil
			}
		}
	case "xfs_growfs":
		if d := m.devices[last]; d != nil {
			d.fileSystem = d.capacity
			return nil
		}
	}
	return fmt.Errorf("%s %v: it can't be done", program, args)
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func beginsWith(path, text string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	content := make([]byte, len(text))
	_, err = file.ReadAt(content, 0)
	return string(content) == text, errors.Join(err, file.Close())
}

func (m *machine) mount(file, path string) error {
	if isFormatted, err := beginsWith(file, "XFS"); !isFormatted || m.devices[path] != nil {
		return fmt.Errorf("mount %s on %s: %w", file, path, err)
	}
	// What was on the disk is seen again.
	if err := os.Rename(file+".data", filepath.Join(path, "data")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.devices[path] = &device{name: "/dev/loop" + filepath.Base(filepath.Dir(path)), file: file, capacity: size(file), fileSystem: size(file)}
	return nil
}

func (m *machine) unmount(path string) error {
	if m.devices[path] == nil {
		return fmt.Errorf("%s isn't mounted", path)
	}
	if err := os.Rename(filepath.Join(path, "data"), m.devices[path].file+".data"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(m.devices, path)
	return nil
}

// crash ends everything, as the end of a mount namespace does.
func (m *machine) crash(t *testing.T) {
	t.Helper()
	for path := range m.devices {
		if err := m.unmount(path); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *machine) mounts() ([]byte, error) {
	text := []byte("/dev/vda / ext4 rw 0 0\n")
	for path, device := range m.devices {
		text = fmt.Appendf(text, "%s %s xfs rw,relatime 0 0\n", device.name, path)
	}
	return text, nil
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// mustHave looks for one disk of that size, mounted and whole.
func (m *machine) mustHave(t *testing.T, f *Folder, name string, want int64) {
	t.Helper()
	device := m.devices[f.mountPath(name)]
	if device == nil {
		t.Fatalf("%s isn't mounted: %v", name, m.devices)
	}
	if device.capacity != want || device.fileSystem != want || size(device.file) != want {
		t.Errorf("the file has %d, its device %d and its file system %d, want %d", size(device.file), device.capacity, device.fileSystem, want)
	}
	// Nobody else may look in; files made in it belong to its group, which the kubelet sets to the pod's fsGroup.
	info, err := os.Stat(f.DataPath(name))
	if mode := os.ModeDir | os.ModeSetgid | 0o770; err != nil || info.Mode() != mode {
		t.Errorf("the pod's folder is %v (%v), want %s", info, err, mode)
	}
}

func (m *machine) mustBeEmpty(t *testing.T) {
	t.Helper()
	if entries, err := os.ReadDir(m.dir); err != nil || len(entries) > 0 || len(m.devices) > 0 {
		t.Errorf("left are %v and %v (%v)", entries, m.devices, err)
	}
}

// TestWhatIsKilledIsTakenUp kills each method after each of the programs that it runs, and takes it up again, with and
// without a crash of the node in between.
func TestWhatIsKilledIsTakenUp(t *testing.T) {
	for sentence, do := range map[string]struct {
		method func(ctx context.Context, f *Folder) error
		check  func(t *testing.T, m *machine, f *Folder)
	}{
		"a disk is made": {
			func(ctx context.Context, f *Folder) error { return f.Make(ctx, "b", 64*mib) },
			func(t *testing.T, m *machine, f *Folder) { m.mustHave(t, f, "b", 64*mib) },
		},
		"a disk grows": {
			func(ctx context.Context, f *Folder) error { return f.Grow(ctx, "a", 128*mib) },
			func(t *testing.T, m *machine, f *Folder) { m.mustHave(t, f, "a", 128*mib) },
		},
		"a disk is mounted": {
			func(ctx context.Context, f *Folder) error { return f.Mount(ctx, "a") },
			func(t *testing.T, m *machine, f *Folder) { m.mustHave(t, f, "a", 64*mib) },
		},
		"a disk is removed": {
			func(ctx context.Context, f *Folder) error { return f.Remove(ctx, "a") },
			func(t *testing.T, m *machine, _ *Folder) { m.mustBeEmpty(t) },
		},
	} {
		for _, crashes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash %t", sentence, crashes), func(t *testing.T) {
				for steps := 0; ; steps++ {
					m, f := newMachine(t)
					if err := f.Make(t.Context(), "a", 64*mib); err != nil {
						t.Fatal(err)
					}
					m.steps = steps
					err := do.method(t.Context(), f)
					if err != nil && !errors.Is(err, errKilled) {
						t.Fatal(err)
					}
					m.steps = -1
					if crashes {
						m.crash(t)
					}
					if err := do.method(t.Context(), f); err != nil {
						t.Fatalf("killed after %d programs: %v", steps, err)
					}
					do.check(t, m, f)
					if err == nil {
						return
					}
				}
			})
		}
	}
}

func TestAllDisksAreMountedAfterACrash(t *testing.T) {
	m, f := newMachine(t)
	for _, name := range []string{"a", "b", "c"} {
		if err := f.Make(t.Context(), name, MinSize); err != nil {
			t.Fatal(err)
		}
	}
	m.crash(t)
	// One that can't be mounted keeps no other from it.
	if err := os.Truncate(f.file("b"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.DataPath("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pod could write beside the disk (%v)", err)
	}
	if err := f.MountAll(t.Context()); err == nil || !strings.Contains(err.Error(), f.file("b")) {
		t.Errorf("it doesn't tell of the broken one: %v", err)
	}
	m.mustHave(t, f, "a", MinSize)
	m.mustHave(t, f, "c", MinSize)
}

func TestADiskIsNeverMadeSmaller(t *testing.T) {
	m, f := newMachine(t)
	if err := errors.Join(f.Make(t.Context(), "a", 64*mib), f.Grow(t.Context(), "a", 32*mib), f.Make(t.Context(), "a", 32*mib)); err != nil {
		t.Fatal(err)
	}
	m.mustHave(t, f, "a", 64*mib)
}

func TestADiskThatIsGoneIsntMounted(t *testing.T) {
	m, f := newMachine(t)
	if err := f.Mount(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	m.mustBeEmpty(t)
}

func TestWithoutLoopDevicesItIsSaid(t *testing.T) {
	m, f := newMachine(t)
	f.loopControl = filepath.Join(m.dir, "none")
	if err := f.Make(t.Context(), "a", 64*mib); err == nil || !strings.HasPrefix(err.Error(), "this machine has no loop devices") {
		t.Errorf("it says %v", err)
	}
	m.mustBeEmpty(t)
}

func TestFilesAreThoseOfDisks(t *testing.T) {
	m, f := newMachine(t)
	if err := errors.Join(f.Make(t.Context(), "b", MinSize), f.Make(t.Context(), "a", MinSize), os.Mkdir(filepath.Join(m.dir, "unfinished"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if files, err := Files(m.dir); err != nil || !slices.Equal(files, []string{f.file("a"), f.file("b")}) {
		t.Errorf("they are %q (%v)", files, err)
	}
}

func TestWithoutDisksNoDeviceIsLookedAt(t *testing.T) {
	// Looking takes root, which a cluster without nodes does without.
	if err := Detach(nil, 0); err != nil {
		t.Error(err)
	}
}
