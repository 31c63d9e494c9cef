// SPDX-License-Identifier: Apache-2.0

// Package node measures the operator with real database servers on a real node: how
// long it is from a resource to the first answered query, against the same image's
// server started bare in a container on the same node; for how long writes stop when
// the primary is killed, or hands over; and how large things are. make bench sets
// these variables:
//
//	BENCH_NODE_KUBECONFIG  the administrator's kubeconfig of a cluster with one node,
//	                       on which the operator runs by config/install.yaml
//	BENCH_IMAGE            the archive of the operator's image
//	BENCH_INSTALL          the folder config of this repository
//	BENCH_OUT, BENCH_ROUNDS, BENCH_ENGINES
//	                       as in package bench
package node
