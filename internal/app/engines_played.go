//go:build played

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"

	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/controller/databasemanager"
	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/internal/played"
	"coolops.cn/database-manager/internal/played/remote"
)

// engines lists the database engines that there are, of which a test plays the
// servers: all but the positions of their data is as in a release.
func engines() []databasemanager.Engine {
	socket := os.Getenv(remote.SocketVariable)
	// A test that is killed leaves no operator behind.
	go func() {
		remote.AwaitEnd(socket)
		klog.Background().Error(nil, "Nobody plays the servers any more", "socket", socket)
		os.Exit(1)
	}()
	dial := remote.Dialer(socket)
	return []databasemanager.Engine{
		{Engine: playedMySQL{mysql.New()}, Dial: dial},
		{Engine: playedMariaDB{mariadb.New()}, Dial: dial},
		{Engine: playedPostgreSQL{postgresql.New()}, Dial: dial},
		{Engine: playedRedis{redis.New()}, Dial: dial},
		{Engine: playedRedis{redis.NewValkey()}, Dial: dial},
	}
}

// All that an engine has besides plan.Engine is kept by embedding it as it is.
type (
	playedMySQL      struct{ mysql.Engine }
	playedMariaDB    struct{ mariadb.Engine }
	playedPostgreSQL struct{ postgresql.Engine }
	playedRedis      struct{ redis.Engine }
)

func compare(position, other string) plan.Order { return plan.Order(played.Compare(position, other)) }

func (playedMySQL) Compare(position, other string) plan.Order { return compare(position, other) }

func (playedMariaDB) Compare(position, other string) plan.Order { return compare(position, other) }

func (playedPostgreSQL) Compare(position, other string) plan.Order { return compare(position, other) }

func (playedRedis) Compare(position, other string) plan.Order { return compare(position, other) }
