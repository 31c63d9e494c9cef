#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/build.sh [image|next]
#
# Builds bin/localcluster and the static bin/database-manager, and with `image`
# also bin/database-manager.tar, an archive of the operator's image. With `next`
# it builds bin/database-manager-next.tar alone: the operator as its next build
# might be, with another pod template, for tests of an upgrade.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The same settings as localcluster builds Kubernetes with, so that what both
# need is compiled once.
export CGO_ENABLED=0 GOWORK=off

if [[ ${1:-} == next ]]; then
	go build -trimpath -tags=successor -ldflags="-s -w" -o bin/database-manager-next ./cmd/database-manager
	bin/localcluster build-image --binary bin/database-manager-next --output bin/database-manager-next.tar \
		--reference coolops.cn/database-manager:next
	exit
fi

(cd localcluster && go build -trimpath -o ../bin/localcluster ./cmd/localcluster)
go build -trimpath -buildvcs=auto -ldflags="-s -w" -o bin/database-manager ./cmd/database-manager

if [[ ${1:-} == image ]]; then
	bin/localcluster build-image --binary bin/database-manager --output bin/database-manager.tar \
		--reference "${IMAGE:-coolops.cn/database-manager:v0.1.0}"
fi
