// SPDX-License-Identifier: Apache-2.0

// Package postgresql holds what is particular to PostgreSQL: the configuration,
// and the script that starts a member. Everything here is pure; talking to a
// running server is the business of internal/dbclient/postgresql.
package postgresql

import (
	_ "embed"
	"fmt"
	"strconv"

	"coolops.cn/database-manager/internal/engine/boot"
	"coolops.cn/database-manager/internal/engine/catalog"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Port is where a member serves clients.
const Port = 5432

// The names of the accounts that the boot script makes, and of the database that
// the application's one owns. They need no quoting, since they are fixed here.
const (
	// Username is the application's account.
	Username = "app"
	// AdminUsername is the operator's account.
	AdminUsername = "operator"
	// ReplicationUsername is the account of members that copy from another one.
	// Its password is the operator's.
	ReplicationUsername = "replicator"
	// Database is the application's database.
	Database = "app"
)

// MaxPasswordLength is how many bytes a password may have for certain; the server
// itself has no limit.
const MaxPasswordLength = 16384

//go:embed boot.sh
var bootScript string

//go:embed pg_hba.conf
var access string

// Engine is PostgreSQL, as the planner and the renderer see it.
type Engine struct{ catalog.Engine }

var _ plan.Engine = Engine{}

// New returns PostgreSQL.
func New() Engine { return Engine{catalog.Engine{Name: v1alpha1.DatabaseTypePostgreSQL}} }

// Port returns 5432.
func (Engine) Port() int32 { return Port }

// Files returns the configuration, who may connect, and the boot script.
func (Engine) Files(fixed plan.Settings) map[string]string {
	return boot.Files(bootScript, map[string]string{"postgresql.conf": config(fixed), accessFile: access})
}

// Command runs the boot script.
func (Engine) Command() []string { return boot.Command() }

// Probe asks whether the server would take a connection, and goes no further:
// the server never learns of an account, so that none is needed.
func (Engine) Probe() []string {
	return []string{"pg_isready", "--quiet", "--host=127.0.0.1", "--port=" + strconv.Itoa(Port), "--username=" + AdminUsername, "--timeout=2"}
}

// Stop begins a fast shutdown, which ends the sessions of clients and is clean.
// SIGTERM, which a container is stopped with unless its image says otherwise,
// means a smart one: it waits until the last client leaves of its own accord,
// and a pool of connections never does.
func (Engine) Stop() []string { return []string{"/bin/sh", "-c", "kill -INT 1"} }

// Username returns the application's account.
func (Engine) Username() string { return Username }

// AdminUsername returns the operator's account.
func (Engine) AdminUsername() string { return AdminUsername }

// Database returns the database that applications use.
func (Engine) Database() string { return Database }

// URI returns a postgresql:// address, which the clients that are made with
// libpq take, and most others.
func (Engine) URI(host, username, password string) string {
	return fmt.Sprintf("postgresql://%s:%s@%s:%d/%s", username, password, host, Port, Database)
}
