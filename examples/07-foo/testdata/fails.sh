#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# An operator that refuses its flags.
echo "unknown flag" >&2
exit 2
