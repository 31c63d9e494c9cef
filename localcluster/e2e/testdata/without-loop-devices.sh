#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs LOCALCLUSTER with its arguments where /dev has everything but loop
# devices. Only the mount namespace that it makes for that sees it so.

set -o errexit -o nounset -o pipefail

if [[ -z ${IN_NAMESPACE:-} ]]; then
	IN_NAMESPACE=yes exec unshare --mount "$0" "$@"
fi
copies=$(dirname "$0")/dev
mkdir -p "${copies}"
mount -t tmpfs none "${copies}"
for file in /dev/*; do
	copy=${copies}/${file#/dev/}
	if [[ ${file} == /dev/loop* ]]; then
		continue
	elif [[ -L ${file} ]]; then
		cp --no-dereference "${file}" "${copy}"
	elif [[ -d ${file} ]]; then
		mkdir "${copy}"
		mount --rbind "${file}" "${copy}"
	else
		touch "${copy}"
		mount --bind "${file}" "${copy}"
	fi
done
mount --move "${copies}" /dev
exec "${LOCALCLUSTER}" "$@"
