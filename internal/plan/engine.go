// SPDX-License-Identifier: Apache-2.0

package plan

import "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"

// Engine is what the planner and the renderer need to know of a database
// engine. An implementation is pure: the same question has the same answer.
type Engine interface {
	ReplicatingEngine

	// Type is the engine's value of spec.dbtype.
	Type() v1alpha1.DatabaseType

	// DefaultVersion is the version of a database whose spec names none when
	// it is created.
	DefaultVersion() string

	// Image returns the upstream image of a version; false if the version
	// isn't known.
	Image(version string) (string, bool)

	// Versions lists the versions that are known, oldest first.
	Versions() []string

	// Port is where the engine serves clients.
	Port() int32

	// Parameters are what spec.config may set, ordered by name.
	Parameters() []Parameter

	// Files are the files that a member reads at its start, by name: the
	// configuration and the boot script. fixed are the parameters that the spec
	// sets, of those that aren't live: another value has another file, and so the
	// member is restarted for it. The files hold no secret.
	Files(fixed Settings) map[string]string

	// LiveFiles are the files, by name, that set the parameters that are live, all
	// of them: a member that starts for whatever reason reads the newest ones.
	LiveFiles(live Settings) map[string]string

	// Command starts a member. The files lie in BootDir, the passwords in
	// AuthDir and AdminDir, the data in DataDir.
	Command() []string

	// Probe is a command that ends with 0, inside a member's container, once
	// the engine serves queries. It uses no credential.
	Probe() []string

	// Stop is a command that runs inside a member's container, after the pause
	// in which its address leaves the Services, and begins a clean shutdown;
	// nil for an engine that shuts down cleanly by SIGTERM.
	Stop() []string

	// Username is the name of the application's account, AdminUsername that of
	// the operator's.
	Username() string
	AdminUsername() string

	// Database is the name of the database that an application is given.
	Database() string

	// URI is what an application connects to. Both parts of the credentials
	// are given as they appear in a URI.
	URI(host, username, password string) string
}

// Where a member's container finds its files.
const (
	// DataDir is the data directory, the only place that outlives a container.
	DataDir = "/data"
	// BootDir holds what Engine.Files returns, LiveDir what Engine.LiveFiles does.
	BootDir = "/boot"
	LiveDir = "/live"
	// AuthDir holds the file "password" of the application's account.
	AuthDir = "/secrets/auth"
	// AdminDir holds the file "password" of the operator's account.
	AdminDir = "/secrets/admin"
	// RunDir is in memory, and empty at each start of a pod: for sockets, and
	// for files with passwords that a server reads at its start.
	RunDir = "/run/database"
)

// TopologyStateVariable is the environment variable that tells a boot script
// what state the topology was in when its container started; absent if there
// was no topology.
const TopologyStateVariable = "TOPOLOGY_STATE"

// EngineState is what one member says of itself. It is comparable, and holds
// nothing that changes while nothing happens, such as an uptime.
type EngineState struct {
	// Role is what the member is, by its own account: primary if it takes
	// writes, and replica if it doesn't, whether it follows another or none.
	Role v1alpha1.MemberRole
	// Version is the version of the running program.
	Version string
	// RunID changes with each start of the program.
	RunID string
	// Settings are the values of the parameters that are live, as
	// Settings.String writes them.
	Settings string
	// Password tells whether the application's account has the password that it
	// should have.
	Password PasswordState
	// IsLoading is true while the member still reads its data and serves nothing.
	IsLoading bool
	// HasFormerLimits is true if it runs with greater limits than its files say,
	// since its source had them, without which it couldn't follow.
	HasFormerLimits bool
	// Replication is what it says of copying from another member, Progress how far
	// it is: that is no news.
	Replication Replication
	Progress    Progress
}

// IsNews tells whether one answer of a member says something new after another.
func IsNews(before, after EngineState) bool {
	before.Progress, after.Progress = Progress{}, Progress{}
	return before != after
}

// PasswordState says what password an account has.
type PasswordState string

// What may be known of a password; empty means nothing.
const (
	PasswordSet     PasswordState = "Set"
	PasswordDiffers PasswordState = "Differs"
)
