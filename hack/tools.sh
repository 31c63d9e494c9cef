#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/tools.sh PACKAGE…
#
# Installs Debian packages that tests need and that are missing. It does nothing
# where they are there, and says what to do where they can't be installed.

set -o errexit -o nounset -o pipefail

missing=()
for package in "$@"; do
	# The name of the program, where it isn't the package's.
	case ${package} in
	util-linux) program=nsenter ;;
	iproute2) program=ip ;;
	*) program=${package} ;;
	esac
	command -v "${program}" >/dev/null || missing+=("${package}")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
	echo "missing: ${missing[*]}. Install them, or run this as root on Debian." >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get --quiet=2 update >/dev/null
apt-get --quiet=2 install --yes --no-install-recommends "${missing[@]}" >/dev/null
