// SPDX-License-Identifier: Apache-2.0

// Package plan decides. It takes what was observed of one database (Snapshot)
// and what its spec renders to (Desired), and returns what to do (Plan) and
// what to say (Report). It holds no client, clock or randomness: the time is a
// parameter, and a password that has to be made is named, not made.
//
// The ladder, in this order; each rung may end the climb:
//
//	deleting ─▶ prerequisites ─▶ stem ─▶ children ─▶ roll one member ─▶ prune ─▶ rest
//
// Only what is safe after everything below it has been done is done; at most
// one member is disrupted in a pass.
package plan
