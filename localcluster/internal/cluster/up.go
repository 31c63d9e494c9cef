package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/build"
	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/images"
)

// Options say what `up` is to start.
type Options struct {
	// Nodes are the names of the nodes; none means a control plane only.
	Nodes []string
	// Port is the API server's port on 127.0.0.1; 0 means any that is free.
	Port int
	// Builder and Maker make what the cache lacks.
	Builder build.Builder
	Maker   images.Maker
}

func (o Options) components() []build.Component {
	if len(o.Nodes) == 0 {
		return build.ForControlPlane()
	}
	return build.ForNodes()
}

// Prepare makes everything that a start needs and that the cache lacks: programs, and images meanwhile.
func (o Options) Prepare(ctx context.Context) (Prepared, error) {
	var prepared Prepared
	var buildErr, imagesErr error
	var wg sync.WaitGroup
	wg.Go(func() { prepared.Binaries, buildErr = o.Builder.Ensure(ctx, o.components()) })
	if len(o.Nodes) > 0 {
		wg.Go(func() { imagesErr = o.prepareImages(ctx, &prepared) })
	}
	wg.Wait()
	if err := errors.Join(buildErr, imagesErr); err != nil || len(o.Nodes) == 0 {
		return prepared, err
	}
	for _, image := range systemImages(prepared.Binaries) {
		archive, err := o.Maker.Binary(image)
		if err != nil {
			return prepared, err
		}
		prepared.Archives = append(prepared.Archives, archive)
	}
	return prepared, nil
}

func (o Options) prepareImages(ctx context.Context, prepared *Prepared) error {
	if err := images.EnsureTools(ctx); err != nil {
		return err
	}
	root, err := o.Maker.NodeRoot(ctx)
	if err != nil {
		return err
	}
	prepared.NodeRoot = root.Path
	for _, definition := range images.Images() {
		made, err := o.Maker.Image(ctx, definition)
		if err != nil {
			return err
		}
		prepared.Archives = append(prepared.Archives, made.Path)
	}
	return nil
}

// Prepared is what Prepare made or found.
type Prepared struct {
	Binaries map[string]string
	NodeRoot string
	Archives []string
}

// Up starts the cluster and waits until it can be used. On a running cluster it changes nothing.
func (c *Cluster) Up(ctx context.Context, options Options) error {
	if running, err := c.Running(); err != nil || running {
		return errors.Join(err, c.checkSame(options))
	}
	if err := options.check(c); err != nil {
		return err
	}
	prepared, err := options.Prepare(ctx)
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Another command may have started it meanwhile.
	if running, err := c.Running(); err != nil || running {
		return errors.Join(err, c.checkSame(options))
	}
	step := options.Builder.Printer.Start("starting cluster " + c.Name)
	if err := c.start(ctx, options, prepared); err != nil {
		return fmt.Errorf("start cluster %s: %w; its logs are in %s", c.Name, err, c.LogDir())
	}
	if err := c.Complete(ctx, prepared); err != nil {
		return fmt.Errorf("start cluster %s: %w; its logs are in %s", c.Name, err, c.LogDir())
	}
	step.Done("ready")
	return nil
}

// checkSame refuses to pretend that a running cluster is what was asked for.
func (c *Cluster) checkSame(options Options) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	if !slices.Equal(config.Nodes, options.Nodes) || (options.Port != 0 && options.Port != config.Port) {
		return fmt.Errorf("cluster %q is running with nodes %q on port %d, other than asked for: remove it with `localcluster down --name %s` first, or choose another --name", c.Name, config.Nodes, config.Port, c.Name)
	}
	return nil
}

func (o Options) check(c *Cluster) error {
	built, err := o.Builder.Has(o.components())
	if err != nil {
		return err
	}
	unpacked, err := o.Maker.Has()
	if err != nil {
		return err
	}
	return ThisMachine().Check(Needs{
		Nodes: len(o.Nodes) > 0, Built: built, Unpacked: unpacked,
		CacheDir: o.Builder.Cache.Dir(), StateDir: c.Dir, Port: o.Port,
	})
}

// start starts the cluster's process and waits for its API server. A crashed cluster's data are taken up again.
func (c *Cluster) start(ctx context.Context, options Options, prepared Prepared) error {
	if err := cgroup.Remove(c.Cgroup(), 5*time.Second); err != nil && len(options.Nodes) > 0 {
		return fmt.Errorf("remove what an earlier cluster left: %w", err)
	}
	port := options.Port
	if previous, err := c.Config(); err == nil && port == 0 && portFree(previous.Port) == nil {
		port = previous.Port
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for API requests: %w", err)
	}
	defer func() { _ = listener.Close() }()
	config := Config{
		Nodes: options.Nodes, Port: listener.Addr().(*net.TCPAddr).Port,
		Binaries: prepared.Binaries, NodeRoot: prepared.NodeRoot,
	}
	if err := errors.Join(c.writeConfig(config), c.writePKI(config), os.MkdirAll(c.LogDir(), 0o700)); err != nil {
		return err
	}
	process, err := c.spawn(config, listener.(*net.TCPListener))
	if err != nil {
		return err
	}
	return c.waitForAPI(ctx, process)
}

// spawn starts the process that the cluster lives and dies with.
func (c *Cluster) spawn(config Config, listener *net.TCPListener) (*os.Process, error) {
	alive, err := c.takeAlive()
	if err != nil {
		return nil, err
	}
	defer func() { _ = alive.Close() }()
	socket, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	log, err := os.OpenFile(c.path("logs", "cluster.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command("/proc/self/exe", InitCommand, "--name="+c.Name, "--state-dir="+parentOf(c.Dir))
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	if len(config.Nodes) == 0 {
		args := append(c.controlPlaneArgs("127.0.0.1", config.Port), fmt.Sprintf("--listen-fd=%d", listenerFD))
		command = exec.Command(config.Binaries["control-plane"], args...)
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	command.Dir, command.Stdout, command.Stderr, command.ExtraFiles = "/", log, log, []*os.File{socket, alive}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the cluster's process: %w", err)
	}
	return command.Process, nil
}
