// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/sizedvolume"
)

// enterRoot makes the node's root file system in this process's mount namespace and moves into it: the cached
// packages read-only, /var and the volumes on the state folder's disk, everything else in memory.
func (s Spec) enterRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate mounts from the host's: %w", err)
	}
	root := filepath.Join(s.Dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := mount("tmpfs", root, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	if err := s.mountPackages(root); err != nil {
		return err
	}
	if err := s.mountKernel(root); err != nil {
		return err
	}
	if err := s.mountState(root); err != nil {
		return err
	}
	if err := s.writeFiles(root); err != nil {
		return err
	}
	return pivot(root)
}

// mountPackages binds the folders of the cached packages read-only, and repeats the links of a merged /usr.
func (s Spec) mountPackages(root string) error {
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib64"} {
		source, target := filepath.Join(s.RootFS, name), filepath.Join(root, name)
		link, err := os.Readlink(source)
		if err == nil {
			err = os.Symlink(link, target)
		} else {
			err = bind(source, target, true)
		}
		if err != nil {
			return fmt.Errorf("the node's root file system: %w", err)
		}
	}
	if err := bindFile(s.Kubelet, filepath.Join(root, kubeletPath)); err != nil {
		return err
	}
	return bindFile(s.KubeProxy, filepath.Join(root, kubeProxyPath))
}

// mountKernel gives the node its own /proc and /sys, and the machine's devices and cgroups.
func (s Spec) mountKernel(root string) error {
	if err := mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	if err := mount("sysfs", filepath.Join(root, "sys"), "sysfs", 0, ""); err != nil {
		return err
	}
	for _, path := range []string{"/sys/fs/cgroup", "/dev"} {
		if err := bind(path, filepath.Join(root, path), false); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) mountState(root string) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, "var", "log"), 0o755); err != nil {
		return err
	}
	for path, source := range map[string]string{"var": filepath.Join(s.Dir, "var"), "volumes": s.Volumes, sizedvolume.NodePath: s.Disks} {
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := bind(source, filepath.Join(root, path), false); err != nil {
			return err
		}
	}
	for path, mode := range map[string]string{"run": "mode=0755", "tmp": "mode=1777"} {
		if err := mount("tmpfs", filepath.Join(root, path), "tmpfs", 0, mode); err != nil {
			return err
		}
	}
	return nil
}

// pivot makes root the root folder, and lets go of the host's.
func pivot(root string) error {
	old := filepath.Join(root, "host")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, old); err != nil {
		return fmt.Errorf("move to the node's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/host", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	if err := os.Remove("/host"); err != nil {
		return err
	}
	// Mounts that the kubelet makes for a container must reach the container's namespace.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, target, err)
	}
	return nil
}

func bind(source, target string, readOnly bool) error {
	if err := mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func bindFile(source, target string) error {
	if err := writeBelow("/", target, nil); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	return nil
}
