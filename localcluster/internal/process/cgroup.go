// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// InCgroup returns the processes in groups below group, a path like `cluster/node`, that have part among the elements of
// their path.
func InCgroup(group, part string) ([]Handle, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Handle
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err == nil && isBelow(string(content), group, part) {
			found = append(found, Handle{pid, fd})
			continue
		}
		_ = unix.Close(fd) // it was only looked at
	}
	return found, nil
}

// isBelow reads what /proc/PID/cgroup says: a line for each hierarchy, with the group's path behind the second colon.
func isBelow(content, group, part string) bool {
	for line := range strings.Lines(content) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if _, below, ok := strings.Cut(fields[2]+"/", "/"+group+"/"); ok && strings.Contains("/"+below, "/"+part+"/") {
			return true
		}
	}
	return false
}
