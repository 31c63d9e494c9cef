// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

func TestIsBelow(t *testing.T) {
	const group, part = "localcluster-dev-1/node-1", "pod1b2c"
	for sentence, row := range map[string]struct {
		content string
		below   bool
	}{
		"a container of the pod is":           {"4:memory:/localcluster-dev-1/node-1/kubepods/besteffort/pod1b2c/0a1b\n", true},
		"in version 2 too":                    {"0::/localcluster-dev-1/node-1/kubepods/pod1b2c/0a1b\n", true},
		"any hierarchy does":                  {"9:pids:/\n4:memory:/localcluster-dev-1/node-1/kubepods/pod1b2c\n", true},
		"the machine may be a container":      {"0::/docker/77/localcluster-dev-1/node-1/kubepods/pod1b2c/0a1b\n", true},
		"a pod of another node isn't":         {"0::/localcluster-dev-1/node-10/kubepods/pod1b2c/0a1b\n", false},
		"a pod of another cluster isn't":      {"0::/localcluster-dev-11/node-1/kubepods/pod1b2c/0a1b\n", false},
		"a pod whose name only begins so":     {"0::/localcluster-dev-1/node-1/kubepods/pod1b2cd/0a1b\n", false},
		"the node's own programs aren't":      {"0::/localcluster-dev-1/node-1\n", false},
		"a process that just ends has no one": {"", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if below := isBelow(row.content, group, part); below != row.below {
				t.Errorf("it is %t", below)
			}
		})
	}
}
