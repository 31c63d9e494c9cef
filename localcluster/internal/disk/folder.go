// SPDX-License-Identifier: Apache-2.0

// Package disk makes disks that really have a size: each is a sparse file with a file system of its own, mounted by a
// loop device. The kernel takes mounts and loop devices away with the mount namespace that they were made in.
package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// MinSize is the smallest size of a disk in bytes: no file system fits into less.
const MinSize = 16 << 20

// Folder holds disks. Of each it has:
//
//	NAME/file          a sparse file of the disk's size, with the file system
//	NAME/mounted       where that is mounted
//	NAME/mounted/data  what pods are given; without the mount it isn't there, so that no pod ever writes beside the disk
//
// Every method may be called again after it failed, or was killed, at any step.
//
// The file system is XFS: to grow it while it is mounted takes the right to mount and no other. Ext4 wants
// CAP_SYS_RESOURCE for it, which root in a container or a sandbox often lacks.
type Folder struct {
	path string
	// loopControl is the device by which the kernel gives out loop devices.
	loopControl string
	run         func(ctx context.Context, program string, args ...string) error
	// mounts returns what /proc/self/mounts says.
	mounts func() ([]byte, error)
	// mu keeps a disk from being mounted while it is removed.
	mu sync.Mutex
}

// NewFolder returns the disks below path.
func NewFolder(path string) *Folder {
	return &Folder{
		path: path, loopControl: "/dev/loop-control", run: run,
		mounts: func() ([]byte, error) { return os.ReadFile("/proc/self/mounts") },
	}
}

// DataPath is the folder of a disk that pods are given.
func (f *Folder) DataPath(name string) string { return filepath.Join(f.mountPath(name), "data") }

func (f *Folder) dir(name string) string       { return filepath.Join(f.path, name) }
func (f *Folder) file(name string) string      { return filepath.Join(f.dir(name), fileName) }
func (f *Folder) mountPath(name string) string { return filepath.Join(f.dir(name), "mounted") }

const fileName = "file"

// Make makes a disk of that size in bytes and mounts it.
func (f *Folder) Make(ctx context.Context, name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := os.Stat(f.loopControl); err != nil {
		return fmt.Errorf("this machine has no loop devices, and disks are mounted by them: use another storage class: %w", err)
	}
	if err := f.format(ctx, name, size); err != nil {
		return fmt.Errorf("format disk %s: %w", name, err)
	}
	if err := f.mount(ctx, name); err != nil {
		return err
	}
	return makeData(f.DataPath(name))
}

func (f *Folder) format(ctx context.Context, name string, size int64) error {
	file := f.file(name)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(f.dir(name), 0o700); err != nil {
		return err
	}
	unformatted := file + ".new"
	if err := os.WriteFile(unformatted, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(unformatted, size); err != nil {
		return err
	}
	// Less than 300 MiB is refused otherwise: on a disk that is really one it would be slow.
	if err := f.run(ctx, "mkfs.xfs", "-q", "-f", "--unsupported", unformatted); err != nil {
		return err
	}
	return os.Rename(unformatted, file)
}

// makeData makes a folder that only its group, which the kubelet sets to the pod's fsGroup, can enter.
func makeData(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := path + ".new"
	if err := os.MkdirAll(unfinished, 0o770); err != nil {
		return err
	}
	if err := os.Chmod(unfinished, 0o770|os.ModeSetgid); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// Mount mounts a disk that was made, unless it is mounted.
func (f *Folder) Mount(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mount(ctx, name)
}

func (f *Folder) mount(ctx context.Context, name string) error {
	if device, err := f.device(name); err != nil || device != "" {
		return err
	}
	if _, err := os.Stat(f.file(name)); err != nil {
		return fmt.Errorf("there is no disk %s: %w", name, err)
	}
	if err := os.MkdirAll(f.mountPath(name), 0o700); err != nil {
		return err
	}
	// The loop device that it takes is freed by the kernel at the unmount, however that comes about.
	return f.run(ctx, "mount", "--types=xfs", "--options=loop", f.file(name), f.mountPath(name))
}

// device is the loop device by which a disk is mounted, and empty for one that isn't.
func (f *Folder) device(name string) (string, error) {
	mounts, err := f.mounts()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == f.mountPath(name) {
			return fields[0], nil
		}
	}
	return "", nil
}

// MountAll mounts the disks that there are, each that it can.
func (f *Folder) MountAll(ctx context.Context) error {
	files, err := Files(f.path)
	for _, file := range files {
		err = errors.Join(err, f.Mount(ctx, filepath.Base(filepath.Dir(file))))
	}
	return err
}

// Files are the files of all disks of a folder.
func Files(path string) ([]string, error) { return filepath.Glob(filepath.Join(path, "*", fileName)) }

// Grow makes a disk larger, whether it is written to meanwhile or not. It is never made smaller.
func (f *Folder) Grow(ctx context.Context, name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.mount(ctx, name); err != nil {
		return err
	}
	device, err := f.device(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(f.file(name))
	if err != nil {
		return err
	}
	if info.Size() < size {
		if err := os.Truncate(f.file(name), size); err != nil {
			return err
		}
	}
	if err := f.run(ctx, "losetup", "--set-capacity", device); err != nil {
		return err
	}
	return f.run(ctx, "xfs_growfs", "-d", f.mountPath(name))
}

// Remove unmounts a disk and removes all that there is of it.
func (f *Folder) Remove(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	device, err := f.device(name)
	if err != nil {
		return err
	}
	if device != "" {
		if err := f.run(ctx, "umount", f.mountPath(name)); err != nil {
			return err
		}
	}
	return os.RemoveAll(f.dir(name))
}

func run(ctx context.Context, program string, args ...string) error {
	if output, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(output))
	}
	return nil
}
