#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails when something that is generated isn't what hack/update.sh makes of the
# sources at hand. Changes nothing in this tree.

exec "$(dirname "${BASH_SOURCE[0]}")/update.sh" --check
