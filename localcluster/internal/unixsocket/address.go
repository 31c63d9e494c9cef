// SPDX-License-Identifier: Apache-2.0

// Package unixsocket reaches sockets whose path is too long for the kernel.
package unixsocket

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Address is the path of a socket in a form that is short enough for the kernel, which takes 107 bytes. It is valid in
// this process, for as long as that lives: the socket's folder stays open.
func Address(path string) (string, error) {
	folder, name := filepath.Split(path)
	descriptor, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: folder, Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", descriptor, name), nil
}
