// SPDX-License-Identifier: Apache-2.0

// Package player plays the nodes of a cluster that has none: it says of pods what a
// kubelet would, of volumes what a provisioner would, and lets servers in memory
// run in them, which an operator built with the tag "played" asks. Nothing listens
// at the addresses of its pods, and nobody dials them.
package player
