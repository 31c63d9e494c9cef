//go:build mutants

// SPDX-License-Identifier: Apache-2.0

package mutants

// recordMutants are of what the topology says of acknowledgement.
func recordMutants() []mutant {
	return []mutant{
		{
			"a member that lost its data is still taken to have acknowledged", "tidb #5834", "internal/plan/follow.go",
			`isLost := other != nil && other.holder != named.Holder && other.holder != "" && named.Holder != ""`,
			"isLost := other != nil && false",
			inSimulator(), "",
		},
		{
			"what is recorded is stronger than what the primary waits for", "quorum.go, weakest that may be in effect", "internal/plan/follow.go",
			"weakest.Required = min(g.topology.Required, target.Required)",
			"weakest.Required = target.Required",
			inPlan(), "",
		},
		{
			"whoever is new is told to acknowledge before it is recorded", "quorum.go, written before", "internal/plan/follow.go",
			"\t\tm.actions = append(m.actions, Follow{Server: other.server, Source: g.source(isNamed && g.isSync)})\n",
			"\t\tm.actions = append(m.actions, Follow{Server: other.server, Source: g.source(g.isSync)})\n",
			inPlan(), "",
		},
		{
			"replicas are recorded as having what they haven't got yet", "quorum.go, after it waits for more", "internal/plan/follow.go",
			"return count >= target.Required",
			"return count >= 0",
			inPlan(), "",
		},
		{
			"a member is dropped from the record while it still acknowledges", "engines.md H4", "internal/plan/follow.go",
			"if !other.answers || !other.isFenced() && (",
			"if false && (",
			inPlan(), "",
		},
		{
			"a Redis replica that is to go stays attached", "engines.md H4", "internal/plan/follow.go",
			"if !stays && !other.isFenced() {",
			"if !stays && !other.isFenced() && false {",
			inPlan(), "",
		},
		{
			"data are given up by what the primary said a while ago", "engines.md H6", "internal/plan/follow.go",
			"case order != OrderUnknown && primary.askedAt.After(other.askedAt):",
			"case order != OrderUnknown:",
			inPlan(), "",
		},
		{
			"after a failover as many are taken to have all as before", "succession.go, has yet to be seen", "internal/plan/succession.go",
			"\tnext := t.named(successor)\n\tfor _, other := range fenced {",
			"\tnext := t.named(successor)\n\tnext.Required = t.Required\n\tfor _, other := range fenced {",
			inSimulator(), "",
		},
	}
}

// followMutants are of who follows, takes writes, and hands over.
func followMutants() []mutant {
	return []mutant{
		{
			"a former primary with commits of its own follows as it is", "engines.md, errant transactions", "internal/plan/follow.go",
			"case order == OrderSame, order == OrderBehind, order == OrderUnknown && kind == ByAttachment:",
			"case order != OrderUnknown, kind == ByAttachment:",
			inSimulator(), "",
		},
		{
			"a member is compared while it still receives from somebody else", "follow.go, what is compared stays", "internal/plan/follow.go",
			"\tif !other.isFenced() {\n\t\tm.actions = append(m.actions, Fence{other.server})\n\t\tm.isUrgent, m.wait = true, urgently\n\t\treturn\n\t}\n",
			"",
			inPlan(), "",
		},
		{
			"a former primary that takes writes is left running", "CNPG #10409", "internal/plan/group.go",
			"if other.isWritable() && !other.isLeaving {",
			"if other.isWritable() && !other.isLeaving && g.forced {",
			inSimulator(), "",
		},
		{
			"a primary is promoted before it has executed what it acknowledged", "engines.md H2", "internal/plan/handover.go",
			"if primary.progress.IsDrained && !primary.isLeaving {",
			"if !primary.isLeaving {",
			inPlan(), "",
		},
		{
			"a planned handover goes to one that lacks the last commits", "engines.md, planned switchover", "internal/plan/handover.go",
			"if !isFit || isAsked && g.wish() != named.Name || !g.engine.Compare(candidate.progress.Position, primary.progress.Position).Has() {",
			"if !isFit || isAsked && g.wish() != named.Name {",
			inSimulator(), "",
		},
		{
			"the primary hands over while nobody has its data", "CNPG #11032", "internal/plan/handover.go",
			"\tif g.successor(primary) == nil {",
			"\tif g.successor(primary) == nil && g.forced {",
			inPlan(), "",
		},
		{
			"a wish for a switchover counts again after every failover", "handover.go, noteWish", "internal/plan/handover.go",
			"if g.asked == g.topology.SwitchedTo || ordinal < 0",
			"if ordinal < 0",
			inPlan(), "",
		},
		{
			"a failover begins no new epoch", "topology.go, epochs", "internal/plan/succession.go",
			"State: t.State, Epoch: t.Epoch + 1, DataID: t.DataID,\n\t\tPrimary",
			"State: t.State, Epoch: t.Epoch, DataID: t.DataID,\n\t\tPrimary",
			inPlan(), "",
		},
	}
}
