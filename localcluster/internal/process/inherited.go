// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepInherited has the files that this process was given, locks and sockets among them, end with it: programs that it
// starts don't inherit them.
func KeepInherited() error {
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, descriptor := range descriptors {
		if number, err := strconv.Atoi(filepath.Base(descriptor)); err == nil && number > int(os.Stderr.Fd()) {
			unix.CloseOnExec(number)
		}
	}
	return nil
}
