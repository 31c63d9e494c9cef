//go:build !played

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"coolops.cn/database-manager/internal/controller/databasemanager"
	"coolops.cn/database-manager/internal/dbclient"
	mysqlclient "coolops.cn/database-manager/internal/dbclient/mysql"
	postgresqlclient "coolops.cn/database-manager/internal/dbclient/postgresql"
	redisclient "coolops.cn/database-manager/internal/dbclient/redis"
	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/engine/redis"
)

// engines lists the database engines that there are.
func engines() []databasemanager.Engine {
	return []databasemanager.Engine{
		{Engine: mysql.New(), Dial: dialMySQL},
		{Engine: mariadb.New(), Dial: dialMariaDB},
		{Engine: postgresql.New(), Dial: dialPostgreSQL},
		{Engine: redis.New(), Dial: dialRedis},
		{Engine: redis.NewValkey(), Dial: dialRedis},
	}
}

func dialMySQL(target dbclient.Target) dbclient.Connection { return mysqlclient.Dial(target) }

func dialMariaDB(target dbclient.Target) dbclient.Connection { return mysqlclient.DialMariaDB(target) }

func dialPostgreSQL(target dbclient.Target) dbclient.Connection {
	return postgresqlclient.Dial(target)
}

func dialRedis(target dbclient.Target) dbclient.Connection { return redisclient.Dial(target) }
