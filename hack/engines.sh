#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: eval "$(hack/engines.sh [IMAGE…])"
#
# Prints assignments for tests against the real database servers:
#
#   ENGINE_ROOTS  a folder that has, for each database image of the local
#                 cluster or each that is named, a link to the image's root file
#                 system: redis:8.0, valkey:9.1, …
#   REDIS_SERVER  a wrapper that runs that server as a program of this machine,
#                 with its image's own libraries

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly images=(redis:7.0 redis:8.0 valkey:8.1 valkey:9.1 postgres:17 postgres:18 mariadb:10.11 mariadb:11.8 mysql:9.7)
readonly folder=${PWD}/bin/engines

# root IMAGE
root() { bin/localcluster image-root "${1/:/-}"; }

# link IMAGE: appears whole, also to tests that run meanwhile.
link() {
	ln -sfn "$(root "$1")" "${folder}/roots/.new-$$"
	mv -T "${folder}/roots/.new-$$" "${folder}/roots/$1"
}

# wrap VARIABLE IMAGE PROGRAM
wrap() {
	local root wrapper=${folder}/$3
	root=$(root "$2")
	cat >"${wrapper}.new" <<-END
		#!/bin/sh
		exec '${root}/usr/lib64/ld-linux-x86-64.so.2' --library-path '${root}/usr/lib/x86_64-linux-gnu' '${root}/usr/bin/$3' "\$@"
	END
	chmod +x "${wrapper}.new"
	mv "${wrapper}.new" "${wrapper}"
	printf 'export %s=%q\n' "$1" "${wrapper}"
}

mkdir -p "${folder}/roots"
wanted=("$@")
((${#wanted[@]})) || wanted=("${images[@]}")
for image in "${wanted[@]}"; do
	link "${image}"
done
printf 'export ENGINE_ROOTS=%q\n' "${folder}/roots"
wrap REDIS_SERVER redis:8.0 redis-server
