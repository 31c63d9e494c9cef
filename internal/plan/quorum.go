// SPDX-License-Identifier: Apache-2.0

package plan

// The arithmetic of synchronous replication. Of one epoch, let
//
//	n  be the replicas that the topology names: all whose acknowledgement a
//	   commit can rest on,
//	k  the acknowledgements that the primary waits for, and
//	R  the replicas that must be fenced, answer, and know their position, before
//	   one of them is promoted without the primary.
//
// Any k of the n may have acknowledged a commit. R of them surely include one of
// those if k + R > n, and so the most advanced of the R has every commit that
// was acknowledged. R = n − k + 1 is the least that will do.
//
//	members  n   k   R   dead members that the primary,  that a failover can bear
//	   2     1   1   1      0                               1
//	   3     2   1   2      1                               1
//	   4     3   2   2      1                               2
//	   5     4   2   3      2                               2
//	   6     5   3   3      2                               3
//	   7     6   3   4      3                               3
//	   8     7   4   4      3                               4
//	   9     8   4   5      4                               4
//	  10     9   5   5      4                               5
//
// (The primary is one of those that a failover bears.) An engine that can't
// count waits for one: k = 1, so R = n, and each replica is needed for a failover.
//
// The topology holds the weakest n and k that may be in effect: it is written
// before the primary is told to wait for fewer, or for others, and after it waits
// for more.

// acknowledgementsOf returns k for n replicas, of an engine that can wait for at
// most so many; 0 for none.
func acknowledgementsOf(n, most int) int { return min((n+1)/2, most) }

// neededOf returns R; more than n, which is never reached, where nothing was
// required.
func neededOf(n, k int) int { return n - k + 1 }
