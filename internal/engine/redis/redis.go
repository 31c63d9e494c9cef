// SPDX-License-Identifier: Apache-2.0

// Package redis holds what is particular to Redis and to Valkey, which began as
// a copy of it and is run in the same way: the configuration, and the script
// that starts a member. Everything here is pure; talking to a running server is
// the business of internal/dbclient/redis.
package redis

import (
	_ "embed"
	"fmt"
	"maps"

	"coolops.cn/database-manager/internal/engine/boot"
	"coolops.cn/database-manager/internal/engine/catalog"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Port is where a member serves clients.
const Port = 6379

// The names of two of the accounts that the boot script makes; the third is what
// replicas sign in with at their source. They need no quoting in the ACL file,
// since they are fixed here.
const (
	// Username is the application's account.
	Username = "app"
	// AdminUsername is the operator's account.
	AdminUsername = "operator"
)

// MaxPasswordLength is how many bytes a password may have for certain. A server
// that has no account for everybody takes no longer argument from a client that
// hasn't proved yet who it is.
const MaxPasswordLength = 16384

//go:embed boot.sh
var bootScript string

// Engine is Redis or Valkey, as the planner and the renderer see it. What
// differs between them begins with the engine's name: the programs, and the
// name of the configuration file.
type Engine struct{ catalog.Engine }

var (
	_ plan.Engine            = Engine{}
	_ plan.ReplicatingEngine = Engine{}
)

// New returns Redis.
func New() Engine { return Engine{catalog.Engine{Name: v1alpha1.DatabaseTypeRedis}} }

// NewValkey returns Valkey.
func NewValkey() Engine { return Engine{catalog.Engine{Name: v1alpha1.DatabaseTypeValkey}} }

// Port returns 6379.
func (Engine) Port() int32 { return Port }

// Files returns the configuration and the boot script.
func (e Engine) Files(fixed plan.Settings) map[string]string {
	all := plan.Settings{}
	for _, known := range e.fixedParameters() {
		all[known.Name] = known.Default
	}
	maps.Copy(all, fixed)
	return boot.Files(bootScript, map[string]string{string(e.Type()) + ".conf": config(all)})
}

// Command runs the boot script for this engine.
func (e Engine) Command() []string { return append(boot.Command(), string(e.Type())) }

// Probe asks as the account without credentials, which may do nothing but
// PING. While the server loads its data it answers LOADING, and the command
// ends with 0 all the same, so that the answer itself is looked at. MASTERDOWN is
// the answer of a replica whose source is away: it serves nobody then, but if it
// weren't ready, all replicas would cease to be while there is no primary, and a
// disruption budget doesn't protect pods that aren't.
func (e Engine) Probe() []string {
	return []string{"/bin/sh", "-c", fmt.Sprintf(`case $(%s-cli -p %d ping) in PONG | MASTERDOWN*) ;; *) exit 1 ;; esac`, e.Type(), Port)}
}

// Stop returns nil: SIGTERM is a clean shutdown.
func (Engine) Stop() []string { return nil }

// Username returns the application's account.
func (Engine) Username() string { return Username }

// AdminUsername returns the operator's account.
func (Engine) AdminUsername() string { return AdminUsername }

// Database returns the number of the database that applications use.
func (Engine) Database() string { return "0" }

// URI returns a redis:// address, which every client of both engines takes.
func (e Engine) URI(host, username, password string) string {
	return fmt.Sprintf("redis://%s:%s@%s:%d/%s", username, password, host, Port, e.Database())
}
