// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/plan"
)

// replicates is how an engine replicates: what a dialect needs statements and
// decisions for, and not only other words.
type replicates interface {
	// query extends the query for the state of a member, so that read finds in its
	// further results what it says of replication.
	query(state string) string
	read(rows *sql.Rows, state *plan.EngineState) error
	// The verbs are those of dbclient.Replicator, and Promote.
	promote(ctx context.Context, c *Connection, required plan.Acknowledgement) error
	follow(ctx context.Context, c *Connection, source plan.Source) error
	fence(ctx context.Context, c *Connection) error
	demote(ctx context.Context, c *Connection) error
	require(ctx context.Context, c *Connection, required plan.Acknowledgement) error
}

// attendant is an engine whose primary needs attention while its commits wait. It
// changes nothing that a client would see.
type attendant interface {
	attend(ctx context.Context, c *Connection)
}

var _ dbclient.Replicator = (*Connection)(nil)

// Follow has the member copy from another one.
func (c *Connection) Follow(ctx context.Context, source plan.Source) error {
	return c.dialect.replicates.follow(ctx, c, source)
}

// Fence has the member receive nothing any more.
func (c *Connection) Fence(ctx context.Context) error { return c.dialect.replicates.fence(ctx, c) }

// Demote has the primary take no writes any more.
func (c *Connection) Demote(ctx context.Context) error { return c.dialect.replicates.demote(ctx, c) }

// Require sets what the primary waits for.
func (c *Connection) Require(ctx context.Context, required plan.Acknowledgement) error {
	return c.dialect.replicates.require(ctx, c, required)
}
