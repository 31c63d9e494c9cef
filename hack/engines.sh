#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: eval "$(hack/engines.sh)"
#
# Prints assignments that name each real database server as a program of this
# machine, such as REDIS_SERVER=/path/to/redis-server: a wrapper that runs the
# server of the local cluster's image with that image's own libraries.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# wrap VARIABLE IMAGE PROGRAM
wrap() {
	local root wrapper=${PWD}/bin/engines/$3
	root=$(bin/localcluster image-root "$2")
	mkdir -p bin/engines
	cat >"${wrapper}.new" <<-END
		#!/bin/sh
		exec '${root}/usr/lib64/ld-linux-x86-64.so.2' --library-path '${root}/usr/lib/x86_64-linux-gnu' '${root}/usr/bin/$3' "\$@"
	END
	chmod +x "${wrapper}.new"
	mv "${wrapper}.new" "${wrapper}"
	printf 'export %s=%q\n' "$1" "${wrapper}"
}

wrap REDIS_SERVER redis redis-server
