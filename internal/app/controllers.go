// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coolops.cn/database-manager/internal/controller/databasemanager"
	"coolops.cn/database-manager/internal/controller/foo"
	"coolops.cn/database-manager/internal/dbclient"
	mysqlclient "coolops.cn/database-manager/internal/dbclient/mysql"
	postgresqlclient "coolops.cn/database-manager/internal/dbclient/postgresql"
	redisclient "coolops.cn/database-manager/internal/dbclient/redis"
	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/kit"
)

// controller keeps the objects of one kind as they ask for.
type controller interface {
	// WaitForCaches waits until the controller has seen everything that exists.
	WaitForCaches(ctx context.Context) error
	// Run works until the context ends, and returns when the last sync has.
	Run(ctx context.Context, workers int)
}

// constructor makes a controller.
type constructor func(cluster, *kit.Metrics) (controller, error)

// constructors lists the controllers that there are.
func constructors() map[string]constructor {
	return map[string]constructor{"databasemanager": newDatabaseManager, "foo": newFoo}
}

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

// ControllerNames are the names of all controllers, in order.
func ControllerNames() []string {
	var names []string
	for name := range constructors() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// build makes the controllers of those names, or all.
func build(c cluster, metrics *kit.Metrics, names []string) (map[string]controller, error) {
	if len(names) == 0 {
		names = ControllerNames()
	}
	built := map[string]controller{}
	for _, name := range names {
		construct, exists := constructors()[name]
		if !exists {
			return nil, fmt.Errorf("there is no controller %q; there are %s", name, strings.Join(ControllerNames(), ", "))
		}
		controller, err := construct(c, metrics)
		if err != nil {
			return nil, fmt.Errorf("make the controller %s: %w", name, err)
		}
		built[name] = controller
	}
	return built, nil
}

func newDatabaseManager(c cluster, metrics *kit.Metrics) (controller, error) {
	return databasemanager.New(databasemanager.Config{
		Kubernetes:        c.kubernetes,
		Databases:         c.resources,
		Children:          c.children,
		Pods:              c.pods,
		Credentials:       c.credentials,
		Owners:            c.owners,
		Engines:           engines(),
		MayAct:            c.mayAct,
		OperatorNamespace: c.ownNamespace,
		Defaults:          c.defaults,
		Recorder:          c.recorder,
		Metrics:           metrics,
	})
}

func newFoo(c cluster, metrics *kit.Metrics) (controller, error) {
	return foo.New(foo.Config{
		Kubernetes: c.kubernetes,
		Foos:       c.resources,
		Children:   c.children,
		Owners:     c.owners,
		Render:     foo.Render,
		Recorder:   c.recorder,
		Metrics:    metrics,
	})
}
