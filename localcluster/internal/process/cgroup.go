// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"strings"
)

// InCgroup returns the processes in groups below group, a path like `cluster/node`, that have part among the elements of
// their path.
func InCgroup(group, part string) ([]Handle, error) {
	return find(func(pid int) bool {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		return err == nil && isBelow(string(content), group, part)
	})
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
