#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: eval "$(hack/engines.sh [IMAGE…])"
#
# Prints an assignment for tests against the real database servers:
#
#   ENGINE_ROOTS  a folder that has, for each database image of the local
#                 cluster or each that is named, a link to the image's root file
#                 system: redis:8.0, valkey:9.1, …

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly images=(redis:7.0 redis:8.0 valkey:8.1 valkey:9.1 postgres:17 postgres:18 mariadb:10.11 mariadb:11.8 mysql:9.7)
readonly roots=${PWD}/bin/engines/roots

# link IMAGE: appears whole, also to tests that run meanwhile.
link() {
	ln -sfn "$(bin/localcluster image-root "${1/:/-}")" "${roots}/.new-$$"
	mv -T "${roots}/.new-$$" "${roots}/$1"
}

mkdir -p "${roots}"
wanted=("$@")
((${#wanted[@]})) || wanted=("${images[@]}")
for image in "${wanted[@]}"; do
	link "${image}"
done
printf 'export ENGINE_ROOTS=%q\n' "${roots}"
