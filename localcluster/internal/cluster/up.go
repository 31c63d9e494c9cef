// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/build"
	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/images"
)

// Options say what `up` is to start.
type Options struct {
	// ControlPlaneOnly asks for a cluster without nodes.
	ControlPlaneOnly bool
	// Nodes is the number of nodes; 0 means as many as there are, or one.
	Nodes int
	// NodeLostAfter is how long nothing is heard of a node until it isn't ready, and EvictAfter how long its pods stay from
	// then on, where they don't say; 0 means as it is, or DefaultNodeLostAfter and DefaultEvictAfter.
	NodeLostAfter, EvictAfter time.Duration
	// Fake is the number of nodes that kwok plays, beside real ones or alone; 0 means as many as there are.
	Fake int
	// Port is the API server's port on 127.0.0.1; 0 means any that is free.
	Port int
	// AuditLog asks for every request to be noted in the audit log.
	AuditLog bool
	// Builder and Maker make what the cache lacks.
	Builder build.Builder
	Maker   *images.Maker
}

func (o Options) components() []build.Component {
	components := build.ForNodes()
	if o.ControlPlaneOnly {
		components = build.ForControlPlane()
	}
	if o.Fake > 0 {
		components = append(components, build.ForFake()...)
	}
	return components
}

// Prepare makes everything that a start needs and that the cache lacks: programs, and images meanwhile. What fails
// first ends the other.
func (o Options) Prepare(ctx context.Context) (Prepared, error) {
	var prepared Prepared
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	try := func(do func() error) {
		wg.Go(func() {
			if err := do(); err != nil {
				cancel(err)
			}
		})
	}
	try(func() (err error) {
		prepared.Binaries, err = o.Builder.Ensure(ctx, o.components())
		return err
	})
	if !o.ControlPlaneOnly {
		try(func() error { return o.prepareImages(ctx, &prepared) })
	}
	wg.Wait()
	if ctx.Err() != nil || o.ControlPlaneOnly {
		return prepared, context.Cause(ctx)
	}
	for _, image := range systemImages(prepared.Binaries) {
		archive, err := o.Maker.Binary(ctx, image)
		if err != nil {
			return prepared, err
		}
		prepared.Archives = append(prepared.Archives, archive)
	}
	return prepared, nil
}

func (o Options) prepareImages(ctx context.Context, prepared *Prepared) error {
	root, err := o.Maker.NodeRoot(ctx)
	if err != nil {
		return err
	}
	prepared.NodeRoot, prepared.Images = root.Path, map[string]string{}
	for _, definition := range images.Images() {
		made, err := o.Maker.Image(ctx, definition)
		if err != nil {
			return err
		}
		for _, reference := range definition.References {
			prepared.Images[reference] = made.Path
		}
	}
	return nil
}

// Prepared is what Prepare made or found.
type Prepared struct {
	Binaries map[string]string
	NodeRoot string
	// Archives are imported into every node; Images are pulled when they are needed, by reference.
	Archives []string
	Images   map[string]string
}

// Up starts the cluster and waits until it can be used. On a running cluster it changes nothing, but adds nodes and
// finishes a start that was interrupted.
func (c *Cluster) Up(ctx context.Context, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	if running, err := c.isUp(options); err != nil || running {
		return err
	}
	before, err := c.configBefore()
	if err != nil {
		return err
	}
	options.Fake = cmp.Or(options.Fake, before.Fake)
	if err := options.Check(c.Dir); err != nil {
		return err
	}
	prepared, err := options.Prepare(ctx)
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx, options.Builder.Printer.Printf)
	if err != nil {
		return err
	}
	defer unlock()
	// Another command may have started it meanwhile.
	if running, err := c.isUp(options); err != nil || running {
		return err
	}
	step := options.Builder.Printer.Start("starting cluster " + c.Name)
	err = c.bringUp(ctx, options, prepared)
	step.End(err, "ready")
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: go on with `localcluster up --name %s`, or remove it with `localcluster down --name %s`", c.Name, c.Name)
	}
	if err != nil {
		return fmt.Errorf("start cluster %s: %w; its logs are in %s", c.Name, err, c.LogDir())
	}
	return nil
}

// isUp tells whether the cluster runs, as asked for, and its start is complete.
func (c *Cluster) isUp(options Options) (bool, error) {
	running, err := c.Running()
	if err != nil || !running {
		return false, err
	}
	config, err := c.Config()
	if err != nil {
		return false, err
	}
	if err := c.checkSame(config, options); err != nil {
		return false, err
	}
	if options.Nodes > len(config.Nodes) || options.Fake > config.Fake {
		return false, nil
	}
	_, err = os.Stat(c.path(completeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (c *Cluster) bringUp(ctx context.Context, options Options, prepared Prepared) error {
	running, err := c.Running()
	if err != nil {
		return err
	}
	begin := func() error { return c.start(ctx, options, prepared) }
	if running {
		begin = func() error { return c.grow(options) }
	}
	if err := begin(); err != nil {
		return err
	}
	if err := c.waitForAPI(ctx); err != nil {
		return err
	}
	if err := c.complete(ctx, prepared); err != nil {
		return err
	}
	return os.WriteFile(c.path(completeFile), nil, 0o600)
}

// checkSame refuses to pretend that a running cluster is what was asked for.
func (c *Cluster) checkSame(config Config, options Options) error {
	differs := func(asked, has time.Duration) bool { return asked != 0 && asked != has }
	if options.ControlPlaneOnly != (len(config.Nodes) == 0) || (options.AuditLog && !config.AuditLog) || (options.Port != 0 && options.Port != config.Port) ||
		(options.Fake != 0 && config.Fake == 0) || differs(options.NodeLostAfter, config.NodeLostAfter) || differs(options.EvictAfter, config.EvictAfter) {
		return fmt.Errorf("cluster %q is running with nodes %q and %d fake ones on port %d, audit log %t, nodes lost after %s and pods evicted after %s, other than asked for: remove it with `localcluster down --name %s` first, or choose another --name",
			c.Name, config.Nodes, config.Fake, config.Port, config.AuditLog, config.NodeLostAfter, config.EvictAfter, c.Name)
	}
	return errors.Join(c.checkNumber(config, options), c.checkFake(config, options))
}

// Check refuses what can't succeed on this machine. stateDir is empty when nothing is to be started.
func (o Options) Check(stateDir string) error {
	built, err := o.Builder.Has(o.components())
	if err != nil {
		return err
	}
	unpacked, err := o.Maker.Has()
	if err != nil {
		return err
	}
	return ThisMachine().Check(Needs{
		Nodes: !o.ControlPlaneOnly, Built: built, Unpacked: unpacked,
		CacheDir: o.Builder.Cache.Dir(), StateDir: stateDir, Port: o.Port,
	})
}

// start starts the cluster's process. A crashed cluster's data are taken up again.
func (c *Cluster) start(ctx context.Context, options Options, prepared Prepared) error {
	before, err := c.configBefore()
	if err != nil {
		return err
	}
	if err := errors.Join(c.checkNotSmaller(before, options), c.checkFake(before, options)); err != nil {
		return err
	}
	if err := c.removeTraces(); err != nil {
		return err
	}
	listener, err := c.listen(options.Port)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the cluster's process has its own copy
	config := options.config(before)
	config.Port, config.Binaries, config.NodeRoot, config.Images = portOf(listener), prepared.Binaries, prepared.NodeRoot, prepared.Images
	if err := errors.Join(c.writeConfig(config), c.writePKI(config), os.MkdirAll(c.LogDir(), 0o700)); err != nil {
		return err
	}
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }() // as above
	return c.spawn(ctx, config, socket)
}

// config is what is asked for, of a cluster that was like before. All nodes start with it, also those that were stopped.
func (o Options) config(before Config) Config {
	config := Config{AuditLog: o.AuditLog, Fake: o.Fake}
	if !o.ControlPlaneOnly {
		config.Nodes = nodeNames(cmp.Or(o.Nodes, len(before.Nodes), 1))
		config.NodeLostAfter = cmp.Or(o.NodeLostAfter, before.NodeLostAfter, DefaultNodeLostAfter)
		config.EvictAfter = cmp.Or(o.EvictAfter, before.EvictAfter, DefaultEvictAfter)
	}
	return config
}

// removeTraces removes what a crashed process of this cluster left.
func (c *Cluster) removeTraces() error {
	holders, err := c.holders()
	if err != nil {
		return err
	}
	for _, holder := range holders {
		holder.Close()
	}
	if len(holders) > 0 {
		return fmt.Errorf("process %d of the cluster still runs, though its state folder was removed: end it with `localcluster down --name %s`", holders[0].PID, c.Name)
	}
	for _, file := range []string{completeFile, awayFile} {
		if err := os.Remove(c.path(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(cgroup.Remove(c.Cgroup(), 5*time.Second), c.detachDisks()); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	return nil
}

// listen opens the API server's socket: on the port asked for, or the one of an earlier run, or any.
func (c *Cluster) listen(port int) (*net.TCPListener, error) {
	if previous, err := c.Config(); err == nil && port == 0 && portFree(previous.Port) == nil {
		port = previous.Port
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, fmt.Errorf("listen for API requests: %w", err)
	}
	return listener, nil
}

func portOf(listener net.Listener) int {
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // an address of the standard library has both
	number, _ := strconv.Atoi(port)
	return number
}

// spawn starts the process that the cluster lives and dies with. It inherits the socket, the lock of the alive file
// and those that keep its programs in the cache.
func (c *Cluster) spawn(ctx context.Context, config Config, socket *os.File) error {
	alive, err := c.takeAlive(ctx)
	if err != nil {
		return err
	}
	inherited := []*os.File{socket, alive}
	defer func() {
		for _, file := range inherited[1:] {
			_ = file.Close() // nothing was written
		}
	}()
	for _, path := range config.cached() {
		held, err := cache.Hold(path)
		if err != nil {
			return err
		}
		inherited = append(inherited, held)
	}
	log, err := os.OpenFile(c.path("logs", "cluster.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // nothing was written
	command := c.command(config)
	command.Dir, command.Stdout, command.Stderr, command.ExtraFiles = "/", log, log, inherited
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the cluster's process: %w", err)
	}
	return command.Process.Release()
}

// command is the cluster's process: the control plane itself, or the one that joins it with nodes. In a session of
// its own, no signal of the terminal reaches it.
func (c *Cluster) command(config Config) *exec.Cmd {
	if len(config.Nodes) == 0 {
		args := append(c.controlPlaneArgs(config, "127.0.0.1", config.Port), fmt.Sprintf("--listen-fd=%d", listenerFD))
		command := exec.Command(config.Binaries[build.ControlPlane.Name], args...)
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return command
	}
	command := exec.Command("/proc/self/exe", InitCommand, "--name="+c.Name, "--state-dir="+filepath.Dir(c.Dir))
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	return command
}
