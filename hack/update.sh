#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/update.sh [--check]
#
# Makes everything that is generated anew from the sources at hand. The work is
# done on a copy, so that this tree builds while it goes on, and stays as it was
# when it fails. With --check this tree isn't changed at all: the exit code is 1
# when something in it is stale, with the difference and the remedy.
#
# Needs Go, and no network beyond a Go module proxy.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "${copy}"' EXIT

# All that the generators read and write: folders, and single files in folders
# that are read only.
readonly student=examples/06-student-crd
readonly sources=(go.mod go.sum hack pkg config "${student}")
readonly read_only=(cmd internal docs)
readonly pages=(docs/reference.md docs/engines.md docs/licenses.md cmd/database-manager/licenses.txt)

cp -R --parents "${sources[@]}" "${read_only[@]}" "${copy}"
if ! "${copy}/hack/generate.sh" >"${copy}/log" 2>&1; then
	cat "${copy}/log" >&2
	echo "hack/generate.sh fails; its output is above" >&2
	exit 1
fi

if [[ ${1:-} != --check ]]; then
	# What is written by hand isn't copied back: it may have been edited meanwhile.
	find pkg/apis "${student}/apis" -name 'zz_generated.*.go' -delete
	(cd "${copy}" && find pkg/apis "${student}/apis" -name 'zz_generated.*.go') | while read -r file; do
		cp "${copy}/${file}" "${file}"
	done
	for target in pkg/generated config/crd "${student}/generated" "${student}/crd.yaml"; do
		rm -rf "${target}"
		cp -R "${copy}/${target}" "${target}"
	done
	cp "${copy}"/config/{crds,operator,operator-namespaced,install}.yaml config
	for page in "${pages[@]}"; do
		cp "${copy}/${page}" "${page}"
	done
	exit
fi

stale=false
for source in "${sources[@]}" "${pages[@]}"; do
	diff --recursive --unified --new-file "${source}" "${copy}/${source}" || stale=true
done
if "${stale}"; then
	echo "generated files are stale, as shown above: run hack/update.sh, and commit what it changes" >&2
	exit 1
fi
