// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLockWaitsUntilTheHolderIsDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(t.Context(), path, func() { t.Error("the first waits") })
	if err != nil {
		t.Fatal(err)
	}
	second, err := Lock(t.Context(), path, func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestTry(t *testing.T) {
	for sentence, row := range map[string]struct {
		held, wanted int
		free         bool
	}{
		"two may look at once":                   {unix.LOCK_SH, unix.LOCK_SH, true},
		"nobody looks at what one has alone":     {unix.LOCK_EX, unix.LOCK_SH, false},
		"nobody has alone what another looks at": {unix.LOCK_SH, unix.LOCK_EX, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			var files [2]*os.File
			for i := range files {
				file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = file.Close() }()
				files[i] = file
			}
			if free, err := Try(files[0], row.held); err != nil || !free {
				t.Fatalf("the first gets %t (%v)", free, err)
			}
			if free, err := Try(files[1], row.wanted); err != nil || free != row.free {
				t.Errorf("the second gets %t (%v)", free, err)
			}
		})
	}
}
