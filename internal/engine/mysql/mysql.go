// SPDX-License-Identifier: Apache-2.0

// Package mysql holds what is particular to MySQL: the configuration, and the
// script that starts a member. Everything here is pure; talking to a running
// server is the business of internal/dbclient/mysql.
package mysql

import (
	_ "embed"
	"fmt"

	"coolops.cn/database-manager/internal/engine/boot"
	"coolops.cn/database-manager/internal/engine/catalog"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// Port is where a member serves clients.
	Port = 3306
	// Socket is where it serves those in its own container.
	Socket = plan.RunDir + "/mysql.sock"
)

// The names that the boot script uses. They need no quoting in SQL, since they
// are fixed here.
const (
	// Username is the application's account.
	Username = "app"
	// AdminUsername is the operator's account.
	AdminUsername = "operator"
	// ReplicationUsername is the account that members copy from each other
	// with; it has the operator's password.
	ReplicationUsername = "replicator"
	// Database is the application's database.
	Database = "app"
)

//go:embed boot.sh
var bootScript string

//go:embed initialise.sql
var initialiseSQL string

// Engine is MySQL, as the planner and the renderer see it.
type Engine struct{ catalog.Engine }

var (
	_ plan.Engine            = Engine{}
	_ plan.ReplicatingEngine = Engine{}
)

// New returns MySQL.
func New() Engine { return Engine{catalog.Engine{Name: v1alpha1.DatabaseTypeMySQL}} }

// Port returns 3306.
func (Engine) Port() int32 { return Port }

// Files returns the configuration, the boot script, and what is in a database
// that is made.
func (Engine) Files(fixed plan.Settings) map[string]string {
	return boot.Files(bootScript, map[string]string{"mysql.cnf": config(fixed), "initialise.sql": initialiseSQL})
}

// Command runs the boot script.
func (Engine) Command() []string { return boot.Command() }

// Probe asks without credentials. To be refused is an answer: mysqladmin's ping
// ends with 0 then.
func (Engine) Probe() []string {
	return []string{"mysqladmin", "--no-defaults", "--socket=" + Socket, "--connect-timeout=2", "--user=nobody", "ping"}
}

// Stop returns nil: SIGTERM is a clean shutdown.
func (Engine) Stop() []string { return nil }

// Username returns the application's account.
func (Engine) Username() string { return Username }

// AdminUsername returns the operator's account.
func (Engine) AdminUsername() string { return AdminUsername }

// Database returns the application's database.
func (Engine) Database() string { return Database }

// URI returns a mysql:// address.
func (Engine) URI(host, username, password string) string {
	return fmt.Sprintf("mysql://%s:%s@%s:%d/%s", username, password, host, Port, Database)
}

// MostAcknowledgements returns 9: all the replicas that a database can have.
func (Engine) MostAcknowledgements() int { return v1alpha1.MaxReplicas - 1 }

// DemotesAtStart returns false: a running server is told.
func (Engine) DemotesAtStart() bool { return false }

// CopiesAccounts returns false, though the server could. A primary that waits for
// its replicas lets nobody log in while what it waits for is the change of an
// account: not even the replica that it waits for. It would never end.
func (Engine) CopiesAccounts() bool { return false }

// Acknowledging returns ByReplica: each is told whether it acknowledges, and the primary counts.
func (Engine) Acknowledging() plan.Acknowledging { return plan.ByReplica }
