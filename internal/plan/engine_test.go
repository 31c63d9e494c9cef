// SPDX-License-Identifier: Apache-2.0

package plan

import "coolops.cn/database-manager/internal/played"

// plainEngine is an engine that the planner asks about replication alone.
type plainEngine struct {
	Engine
	playedEngine
}

func (plainEngine) Port() int32 { return 6379 }
func (e plainEngine) Compare(position, other string) Order {
	return e.playedEngine.Compare(position, other)
}
func (e plainEngine) MostAcknowledgements() int    { return e.playedEngine.MostAcknowledgements() }
func (e plainEngine) Acknowledging() Acknowledging { return e.playedEngine.Acknowledging() }
func (e plainEngine) DemotesAtStart() bool         { return e.playedEngine.DemotesAtStart() }
func (e plainEngine) CopiesAccounts() bool         { return e.playedEngine.CopiesAccounts() }

// anEngine is one of which each replica is told whether it acknowledges.
func anEngine() Engine {
	return plainEngine{playedEngine: playedEngine{Kind: played.Kind{Counts: played.Willing}, most: 10}}
}
