// SPDX-License-Identifier: Apache-2.0

// Package enginetest runs members of a database as their pods would: the real
// server of an image of the local cluster, started by the real boot script, as
// the first process of its own process, mount and network namespaces, on the
// image's own file system, as user 999 without any capability.
//
// It stands behind the build tag realengine, and needs root, the programs ip,
// nsenter and setpriv, and what hack/engines.sh prints.
//
// Start runs one member by itself. A Network joins several, which find each other
// by the names that Kubernetes gives:
//
//	network := enginetest.NewNetwork(t, "orders")
//	first := network.Start(0, member) // orders-0.orders-members.test.svc
//	second := network.Start(1, member)
//
// What happens to a member:
//
//	                            processes  address  /run, /tmp  volume  stands for
//	Kill, then Restart          anew       stays    stay        stays   the server crashes
//	Stop, then Restart          anew       stays    stay        stays   the server ends in place
//	Replace; Delete and Create  anew       new      empty       stays   the pod is deleted
//	Delete, LoseVolume, Create  anew       new      empty       empty   the node is lost with its disk
//	Freeze, then Thaw           stay       stays    stay        stays   the machine stands still
//	Isolate, then Rejoin        stay       stays    stay        stays   a partition; connections stall
//
// SetEnv says what the variables that come from the topology's ConfigMap are from
// the next start on. Two ways lead from the test to a member: Network.Dial, from
// beside the members, which IsolateFromTest cuts; and Running.Dial and
// Running.Exec, from within the pod, which nothing cuts.
package enginetest
