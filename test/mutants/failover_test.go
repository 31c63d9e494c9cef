//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// fenceMutants are of who may still acknowledge when another member takes the primary's place.
func fenceMutants() []mutant {
	return []mutant{
		{
			"the old primary keeps its label through a failover", "CNPG #10409", "internal/plan/failover.go",
			"\tif primary != nil {\n\t\tm.roles[primary.name()] = \"\"\n\t}\n\tif g.fence(m) {",
			"\tif g.fence(m) {",
			inPlan(), "",
		},
		{
			"a replica too few is fenced before a promotion", "quorum.go, k + R > n", "internal/plan/quorum.go",
			"return n - k + 1",
			"return n - k",
			inPlan(), "",
		},
		{
			"an attached member that isn't named goes on acknowledging", "engines.md H4", "internal/plan/failover.go",
			"if other.answers && other.role == v1alpha1.MemberRoleReplica && !other.isFenced() {",
			"if g.topology.has(other) && other.answers && other.role == v1alpha1.MemberRoleReplica && !other.isFenced() {",
			inPlan(), "",
		},
		{
			"a terminating member goes on acknowledging", "engines.md H4", "internal/plan/failover.go",
			"if other.answers && other.role == v1alpha1.MemberRoleReplica && !other.isFenced() {",
			"if !other.isLeaving && other.answers && other.role == v1alpha1.MemberRoleReplica && !other.isFenced() {",
			inPlan(), "",
		},
		{
			"an asynchronous primary that is only silent is replaced", "engines.md H5", "internal/plan/failover.go",
			"case primary != nil && !primary.isStopped:",
			"case primary != nil && !primary.isStopped && false:",
			inPlan(), "",
		},
		{
			"nobody looks whether an asynchronous primary has really stopped", "engines.md H5", "internal/plan/failover.go",
			"\t\tm.stopped = g.topology.Primary\n",
			"\t\tm.stopped = \"\"\n",
			inPlan(), "",
		},
		{
			"a replica that doesn't know its position keeps all others from taking over", "engines.md, Redis", "internal/plan/failover.go",
			`other.holder == named.Holder && other.isFenced() && other.progress.Position != ""`,
			"other.holder == named.Holder && other.isFenced()",
			inPlan(), "",
		},
		{
			"a replica on another volume than it was named with counts", "tidb #5834", "internal/plan/failover.go",
			`other.holder == named.Holder && other.isFenced() && other.progress.Position != ""`,
			`other.isFenced() && other.progress.Position != ""`,
			inPlan(), "",
		},
	}
}

// choiceMutants are of when that is, and whose turn it is.
func choiceMutants() []mutant {
	return []mutant{
		{
			"any of the replicas that are fenced is promoted", "engines.md, fence, choose, promote", "internal/plan/failover.go",
			"return other != candidate && !g.engine.Compare(candidate.progress.Position, other.progress.Position).Has()",
			"return false",
			inPlan(), "",
		},
		{
			"a failover doesn't wait for a server that is just starting", "failover.go, failoverPatience", "internal/plan/failover.go",
			"if wait := g.patience(primary) - g.now.Sub(g.unservedSince); wait > 0 {",
			"if wait := g.patience(primary) - g.now.Sub(g.unservedSince); wait > 0 && false {",
			inPlan(), "",
		},
		{
			"a primary that lost its volume is taken for the one that had the data", "CNPG #11006", "internal/plan/group.go",
			`if found == nil || g.topology.Holder == "" || found.holder != g.topology.Holder {`,
			"if found == nil {",
			inPlan(), "",
		},
		{
			"a human's word about one failover holds for all that follow", "topology.go, epochs", "internal/plan/replicas.go",
			"database.Annotations[v1alpha1.AnnotationForceFailover] == strconv.FormatInt(topology.Epoch, 10)",
			"database.Annotations[v1alpha1.AnnotationForceFailover] != strconv.Itoa(0)",
			inPlan(), "",
		},
		{
			"where the record of the primary is lost, a human's word outweighs two that take writes", "R12", "internal/plan/failover.go",
			"case len(writable) > 1:",
			"case len(writable) > 1 && !g.forced:",
			inPlan(), "",
		},
	}
}
