#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: NAME=dev hack/down.sh
#
# Removes the cluster of hack/up.sh. Where there is none it does nothing.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ -x bin/localcluster ]] || (cd localcluster && CGO_ENABLED=0 GOWORK=off go build -trimpath -o ../bin/localcluster ./cmd/localcluster)
bin/localcluster --name "${NAME:-dev}" down
