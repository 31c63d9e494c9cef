// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const pollInterval = 20 * time.Millisecond

// Detach frees the loop devices of the files, whose mounts are gone, and waits until the kernel has let go of them: it
// unmounts some time after the last process of a mount namespace has ended.
func Detach(files []string, timeout time.Duration) error {
	wanted, err := identities(files)
	if err != nil || len(wanted) == 0 {
		return err
	}
	for deadline := time.Now().Add(timeout); ; {
		attached, err := detachOnce(wanted)
		if err != nil || len(attached) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v are still used %s after they were to be freed: something has the volumes mounted", attached, timeout)
		}
		<-time.After(pollInterval)
	}
}

// identity tells a file from all others, under whatever path the kernel knows it.
type identity struct{ device, inode uint64 }

func identities(files []string) (map[identity]bool, error) {
	found := map[identity]bool{}
	for _, file := range files {
		var stat unix.Stat_t
		if err := unix.Stat(file, &stat); err != nil {
			return nil, fmt.Errorf("look at %s: %w", file, err)
		}
		found[identity{stat.Dev, stat.Ino}] = true
	}
	return found, nil
}

// detachOnce asks the kernel to free the devices of those files, and returns the ones that it found.
func detachOnce(wanted map[identity]bool) ([]string, error) {
	bound, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return nil, err
	}
	var attached []string
	for _, entry := range bound {
		device := filepath.Join("/dev", filepath.Base(filepath.Dir(entry)))
		found, err := detachIf(device, wanted)
		if err != nil {
			return nil, err
		}
		if found {
			attached = append(attached, device)
		}
	}
	return attached, nil
}

func detachIf(device string, wanted map[identity]bool) (bool, error) {
	file, err := os.Open(device)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) {
		return false, nil // it has just been freed
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // nothing is written
	info, err := unix.IoctlLoopGetStatus64(int(file.Fd()))
	if errors.Is(err, unix.ENXIO) {
		return false, nil // as above
	}
	if err != nil || !wanted[identity{info.Device, info.Inode}] {
		return false, err
	}
	if err := unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return false, fmt.Errorf("free %s: %w", device, err)
	}
	return true, nil
}
