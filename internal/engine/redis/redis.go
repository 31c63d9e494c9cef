// SPDX-License-Identifier: Apache-2.0

// Package redis holds what is particular to Redis: its versions, its
// configuration, and the script that starts a member. Everything here is pure;
// talking to a running Redis is the business of internal/dbclient/redis.
package redis

import (
	_ "embed"
	"fmt"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Port is where a member serves clients.
const Port = 6379

// The names of the two accounts that the boot script makes. They need no
// quoting in the ACL file, since they are fixed here.
const (
	// Username is the application's account.
	Username = "app"
	// AdminUsername is the operator's account.
	AdminUsername = "operator"
)

// The names of the files that a member reads at its start.
const (
	configFile = "redis.conf"
	bootFile   = "boot.sh"
)

//go:embed boot.sh
var bootScript string

// Engine is Redis, as the planner and the renderer see it.
type Engine struct{}

var _ plan.Engine = Engine{}

// Type returns redis.
func (Engine) Type() v1alpha1.DatabaseType { return v1alpha1.DatabaseTypeRedis }

// Port returns 6379.
func (Engine) Port() int32 { return Port }

// Files returns the configuration and the boot script.
func (Engine) Files(durable bool) map[string]string {
	return map[string]string{configFile: config(durable), bootFile: bootScript}
}

// Command runs the boot script, which ends in exec: no shell stays behind.
func (Engine) Command() []string { return []string{"/bin/sh", plan.BootDir + "/" + bootFile} }

// Probe asks as the account without credentials, which may do nothing but
// PING. While Redis loads its data it answers LOADING, and redis-cli ends with
// 0 all the same, so that the answer itself is looked at.
func (Engine) Probe() []string {
	return []string{"/bin/sh", "-c", fmt.Sprintf(`[ "$(redis-cli -p %d ping)" = PONG ]`, Port)}
}

// Username returns the application's account.
func (Engine) Username() string { return Username }

// AdminUsername returns the operator's account.
func (Engine) AdminUsername() string { return AdminUsername }

// Database returns the number of the database that applications use.
func (Engine) Database() string { return "0" }

// URI returns a redis:// address, as every Redis client takes it.
func (e Engine) URI(host, username, password string) string {
	return fmt.Sprintf("redis://%s:%s@%s:%d/%s", username, password, host, Port, e.Database())
}
