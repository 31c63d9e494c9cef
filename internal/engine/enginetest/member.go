//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/plan"
)

const (
	// user and group are what every member runs as.
	user  = 999
	group = 999

	// patience is how long a member may take for anything that a test waits for.
	patience = time.Minute

	// alone is the name of the pod of a member that is in no Network.
	alone = "member-0"

	// defaultPath is the PATH of upstream images.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Member is what a test wants to be run.
type Member struct {
	// Image is an upstream reference, such as postgres:18 or valkey/valkey:9.1.
	Image string
	// Files are put into the folder of the boot script and the configuration,
	// by name: what Engine.Files returns.
	Files map[string]string
	// LiveFiles are put into their folder, by name: what Engine.LiveFiles returns.
	LiveFiles map[string]string
	// Command starts the member: what Engine.Command returns.
	Command []string
	// AuthPassword and AdminPassword are put into the files that a pod gets from
	// its Secrets.
	AuthPassword, AdminPassword string
	// Stop is run in the container before SIGTERM, when the pod is deleted: what
	// Engine.Stop returns.
	Stop []string
	// Env is added to the environment of an upstream image's container. SetEnv
	// changes it between starts.
	Env map[string]string
	// Data is the folder that the member has as its volume; empty means a new
	// one. What is in it stays, and can be given to another member afterwards.
	Data string
}

// Running is a member that was started. It is killed at the end of the test,
// and if the test failed by then, its output is logged.
//
// Its methods are for the test's own goroutine, except Dial, which any may call
// at any time.
type Running struct {
	t      testing.TB
	member Member
	name   string
	root   string
	folder string
	// process is the container's life that is, or was last.
	process *process
	// hasPod is false from Delete to Create.
	hasPod bool

	// mu guards namespace, the pod's network.
	mu        sync.Mutex
	namespace *os.File

	// seat is the member's place in a Network; nil if it is in none.
	seat *seat
}

// Start starts a member in a new pod that has no network but its own loopback
// interface: folders for sockets and temporary files are empty. It doesn't wait
// for the member to serve: WaitFor does.
func Start(t testing.TB, member Member) *Running {
	t.Helper()
	return start(t, member, alone, nil)
}

func start(t testing.TB, member Member, name string, seat *seat) *Running {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("running a member as its pod would needs root")
	}
	r := &Running{t: t, member: member, name: name, root: Root(t, member.Image), folder: t.TempDir(), seat: seat}
	r.member.Env = maps.Clone(member.Env)
	if seat != nil {
		seat.member = r
	}
	t.Cleanup(func() {
		if r.process == nil {
			return // it wasn't even started
		}
		r.Kill()
		if t.Failed() {
			t.Logf("%s, of %s, ended with %d; it had printed\n%s", name, member.Image, r.process.exit.Code, r.Output())
		}
	})
	t.Cleanup(func() { _ = r.namespace.Close() }) // it was only read, or it never was
	r.Create()
	return r
}

// Root returns the folder of an image's root file system.
func Root(t testing.TB, image string) string {
	t.Helper()
	roots := os.Getenv("ENGINE_ROOTS")
	if roots == "" {
		t.Fatal(`ENGINE_ROOTS isn't set: run the tests by make test-engines, or eval "$(hack/engines.sh)" first`)
	}
	root, err := filepath.EvalSymlinks(filepath.Join(roots, path.Base(image)))
	if err != nil {
		t.Fatalf("no file system of image %s: %v; hack/engines.sh has the list of images", image, err)
	}
	return root
}

// Restart starts a member again that has ended, as the kubelet restarts a
// container in place: everything but the processes is as it was left, its address
// included.
func (r *Running) Restart() {
	r.t.Helper()
	if !r.hasPod {
		r.t.Fatalf("%s has no pod: create it", r.name)
	}
	if r.runs() {
		r.t.Fatalf("%s still runs: end it first", r.name)
	}
	r.start()
}

// SetEnv replaces what is added to the environment, from the next start of the
// container on. A pod's variables that come from a ConfigMap are resolved at each
// start, and one whose optional key is missing isn't set.
func (r *Running) SetEnv(env map[string]string) { r.member.Env = maps.Clone(env) }

// Name returns the name of the member's pod.
func (r *Running) Name() string { return r.name }

// DataFolder returns the place on this machine of the member's volume.
func (r *Running) DataFolder() string {
	if r.member.Data != "" {
		return r.member.Data
	}
	return filepath.Join(r.folder, "data")
}

// layOut makes the member's folders with the owners and modes that the kubelet
// gives them, for a pod with fsGroup 999.
func (r *Running) layOut() error {
	writable := []string{r.DataFolder(), r.path("run"), r.path("tmp")}
	readable := []string{r.path("root"), r.path("boot"), r.path("live"), r.path("names"), r.path("secrets"), r.path("secrets", "auth"), r.path("secrets", "admin")}
	for _, folder := range append(slices.Clone(writable), readable...) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, folder := range writable {
		if err := errors.Join(os.Chown(folder, 0, group), os.Chmod(folder, os.ModeSetgid|0o775)); err != nil {
			return err
		}
	}
	if err := os.Chmod(r.path("tmp"), os.ModeSetgid|0o777); err != nil {
		return err
	}
	for name, content := range r.member.Files {
		if err := os.WriteFile(r.path("boot", name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := r.WriteLive(r.member.LiveFiles); err != nil {
		return err
	}
	return r.WritePasswords(r.member.AuthPassword, r.member.AdminPassword)
}

// WritePasswords replaces the files with the passwords of the application's and
// the operator's account, as the kubelet does once their Secrets have changed. A
// later pod of the member has them as well.
func (r *Running) WritePasswords(app, admin string) error {
	r.member.AuthPassword, r.member.AdminPassword = app, admin
	for secret, password := range map[string]string{"auth": app, "admin": admin} {
		file := r.path("secrets", secret, plan.PasswordKey)
		if err := errors.Join(os.WriteFile(file, []byte(password), 0o440), os.Chown(file, 0, group)); err != nil {
			return err
		}
	}
	return nil
}

// WriteLive replaces the files with the live parameters, as the kubelet does
// once their ConfigMap has changed. A later pod of the member has them as well.
func (r *Running) WriteLive(files map[string]string) error {
	r.member.LiveFiles = files
	for name, content := range files {
		if err := os.WriteFile(r.path("live", name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *Running) path(names ...string) string {
	return filepath.Join(append([]string{r.folder}, names...)...)
}

// environment is that of the member's container.
func (r *Running) environment() []string {
	searchPath := []string{defaultPath}
	// The one folder that an upstream image adds.
	folders, err := filepath.Glob(filepath.Join(r.root, "usr/lib/postgresql/*/bin"))
	for _, folder := range folders {
		searchPath = append(searchPath, strings.TrimPrefix(folder, r.root))
	}
	if err != nil { // a mistake in the pattern
		r.t.Fatal(err)
	}
	variables := []string{"PATH=" + strings.Join(searchPath, ":"), "HOME=/data", "HOSTNAME=" + r.name}
	for name, value := range r.member.Env {
		variables = append(variables, name+"="+value)
	}
	return variables
}

// TerminationMessage returns what the member wrote for the status of its pod.
func (r *Running) TerminationMessage() string {
	message, err := os.ReadFile(r.path("termination-log"))
	if err != nil {
		r.t.Fatalf("read the termination message: %v", err)
	}
	return string(bytes.TrimSpace(message))
}
