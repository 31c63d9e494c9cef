// SPDX-License-Identifier: Apache-2.0

// Package filelock takes locks on files, which the kernel releases when their last holder ends, however it ends.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const pollInterval = 50 * time.Millisecond

// Lock opens the file, making it where it is missing, and waits until the lock is had or ctx ends. Closing the file
// releases it. waiting, unless nil, is called once when another holds the lock.
func Lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// Asked for again and again, not waited for in the kernel: that wait wouldn't end with ctx.
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		held, err := Try(file, unix.LOCK_EX)
		if held {
			return file, nil
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the lock on %s: %w", path, ctx.Err()), file.Close())
		case <-tick.C:
		}
	}
}

// Try takes the lock, of kind unix.LOCK_EX or unix.LOCK_SH, and reports whether it was free.
func Try(file *os.File, kind int) (bool, error) {
	err := unix.Flock(int(file.Fd()), kind|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
