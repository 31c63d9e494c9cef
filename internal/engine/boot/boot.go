// SPDX-License-Identifier: Apache-2.0

// Package boot holds what the boot scripts of all engines share: the lock on the
// volume, the look at what is on it, and the making of a data directory.
//
// A member of an engine starts by a script of its own, boot.sh, of this form:
//
//	. /boot/common.sh
//	has_data=yes
//	open_data ENGINE VERSION || has_data=
//	accept_live FILE check_configuration   # both from /boot and from /live
//	if [ -z "$has_data" ]; then
//		record_version ENGINE VERSION
//		initialise make_data_directory   # fills /data/init
//	fi
//	record_version ENGINE VERSION
//	… write what the server reads at its start, with the accounts' passwords …
//	exec SERVER …
//
// No boot script makes a primary: a new data directory comes up read-only, one
// that exists keeps the role that it has, and only the operator promotes.
package boot

import (
	_ "embed"
	"maps"

	"coolops.cn/database-manager/internal/plan"
)

//go:embed common.sh
var common string

// The names of the files that each member has, whatever its engine.
const (
	// ScriptFile is the engine's own script, which starts a member.
	ScriptFile = "boot.sh"
	// CommonFile is what the script reads first.
	CommonFile = "common.sh"
)

// Files returns the files of a member: the engine's own, its script and what is
// shared.
func Files(script string, own map[string]string) map[string]string {
	files := map[string]string{ScriptFile: script, CommonFile: common}
	maps.Copy(files, own)
	return files
}

// Command runs the script, which ends in exec: no shell stays behind.
func Command() []string { return []string{"/bin/sh", plan.BootDir + "/" + ScriptFile} }
