// SPDX-License-Identifier: Apache-2.0

// Package enginetest runs a member of a database as its pod would: the real
// server of an image of the local cluster, started by the real boot script, as
// the first process of its own process, mount and network namespaces, on the
// image's own file system, as user 999 without any capability.
//
// It stands behind the build tag realengine, and needs root and what
// hack/engines.sh prints.
package enginetest
