// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/build"
	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/network"
	"coolops.cn/database-manager/localcluster/internal/node"
)

// The hidden commands by which this program starts itself in other namespaces.
const (
	// InitCommand becomes the first process of a cluster with nodes.
	InitCommand = "internal-init"
	// NodeCommand becomes the first process of a node.
	NodeCommand = "internal-node"
	// ExecCommand waits for its network and then becomes another program.
	ExecCommand = "internal-exec"
)

// Inherited file descriptors, the first after standard error.
const (
	listenerFD = 3
	aliveFD    = 4
	networkFD  = 3
)

const (
	stopTimeout = 10 * time.Second
	acceptRetry = 100 * time.Millisecond
)

// controlPlanePort is the API server's port in the cluster's network.
const controlPlanePort = 6443

// RunInit is the first process of a cluster with nodes, in pid, mount and network namespaces of its own: it joins the
// control plane and the nodes by a bridge and lets the host reach the API server. When it ends, so does everything.
//
//	host ── 127.0.0.1:port ──┐ (a socket of the host's, served from here)
//	                         │
//	this namespace: bridge ──┼── control plane: etcd, API server, controllers
//	                         └── each node: containerd, kubelet, kube-proxy ── pods
func RunInit(c *Cluster) error {
	// Before the configuration is read for the first time, so that no change of it is missed.
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, changedSignal)
	config, err := c.Config()
	if err != nil {
		return err
	}
	// What is inherited is for this process alone.
	for fd := range aliveFD + 1 + len(config.cached()) {
		if fd >= listenerFD {
			unix.CloseOnExec(fd)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate mounts from the host's: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := network.CreateBridge(); err != nil {
		return err
	}
	if err := serveImages(ctx, config.Images); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("use the inherited socket: %w", err)
	}
	go forward(listener, net.JoinHostPort(network.ControlPlaneIP().String(), strconv.Itoa(controlPlanePort)))

	controlPlane, err := c.startControlPlaneMember(config)
	if err != nil {
		return err
	}
	nodes := newFleet(c)
	if err := nodes.follow(config); err != nil {
		return err
	}
	return c.supervise(ctx, controlPlane, nodes, changed)
}

// forward serves connections to listener by connections to address.
func forward(listener net.Listener, address string) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "accept a connection to the API server:", err)
			<-time.After(acceptRetry) // too many open files, for one, passes
			continue
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				return // the API server isn't up yet: the client sees its connection closed
			}
			defer func() { _ = server.Close() }()
			go func() {
				_, _ = io.Copy(server, client) // an end in either direction ends both
				_ = server.Close()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

func (c *Cluster) startControlPlaneMember(config Config) (*started, error) {
	alive, err := filelock.Lock(context.Background(), c.path(controlPlaneAliveFile), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = alive.Close() }() // the control plane has its own copy
	args := append([]string{ExecCommand, config.Binaries[build.ControlPlane.Name]}, c.controlPlaneArgs(config, network.ControlPlaneIP().String(), controlPlanePort)...)
	return c.startMember(member{
		name: build.ControlPlane.Name, args: args, flags: unix.CLONE_NEWNET, ip: network.ControlPlaneIP(), routes: network.PodRoutes(-1),
		inherited: []*os.File{alive},
	})
}

func (c *Cluster) controlPlaneArgs(config Config, address string, port int) []string {
	args := []string{
		"--pki-dir=" + c.path("pki"), "--data-dir=" + c.path("etcd"),
		"--bind-address=" + address, fmt.Sprintf("--port=%d", port), "--etcd-metrics=" + c.etcdMetricsSocket(),
	}
	if len(config.Nodes) > 0 {
		args = append(args, "--node-lost-after="+config.NodeLostAfter.String(), "--evict-after="+config.EvictAfter.String())
	}
	if len(config.Nodes) > 0 || config.Fake > 0 {
		args = append(args, "--volumes-dir="+c.path("volumes"))
	}
	if config.Fake > 0 {
		args = append(args, "--kwok="+config.Binaries[build.Kwok.Name], "--kwok-log="+c.path("logs", "kwok.log"))
	}
	if config.AuditLog {
		args = append(args, "--audit-log="+c.path("logs", "audit.log"))
	}
	return args
}

func (c *Cluster) nodeSpec(config Config, index int) node.Spec {
	name := config.Nodes[index]
	return node.Spec{
		Name: name, Dir: c.path("nodes", name), RootFS: config.NodeRoot,
		Kubelet: config.Binaries[build.Kubelet.Name], KubeProxy: config.Binaries[build.KubeProxy.Name],
		KubeletKubeconfig:       c.path("pki", kubeletIdentity(name)+".kubeconfig"),
		KubeProxyKubeconfig:     c.path("pki", kubeProxyIdentity+".kubeconfig"),
		NetworkPolicyKubeconfig: c.path("pki", networkPolicyIdentity+".kubeconfig"),
		SizedVolumeKubeconfig:   c.path("pki", sizedVolumeIdentity+".kubeconfig"),
		AuthorityFile:           c.path("pki", "ca.crt"),
		Volumes:                 c.path("volumes", name), Disks: c.path(disksFolder, name), Logs: c.LogDir(), Cgroup: filepath.Join(c.Cgroup(), name),
		Snapshotter: node.SnapshotterFor(c.Dir), LeaseSeconds: leaseSeconds(config.NodeLostAfter),
		IP: network.NodeIP(index), PodCIDR: network.PodCIDR(index), ClusterCIDR: network.ClusterCIDR,
	}
}

// member is a process in a network namespace that is joined to the bridge.
type member struct {
	name   string
	args   []string
	flags  uintptr
	ip     net.IP
	routes []network.Route
	// inherited are files that stay open in the process for as long as it lives.
	inherited []*os.File
}

// started is a member that was started.
type started struct {
	name    string
	process *os.Process
	// ended is closed when it has ended, and err says then how.
	ended chan struct{}
	err   error
}

// terminate gives the member the time to stop cleanly.
func (s *started) terminate() error {
	if err := s.process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
	}
	return nil
}

// startMember starts the process, joins its network, and only then lets it go on.
func (c *Cluster) startMember(m member) (*started, error) {
	log, err := os.OpenFile(filepath.Join(c.LogDir(), m.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	wait, proceed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = wait.Close(), proceed.Close() }()
	command := exec.Command("/proc/self/exe", m.args...)
	command.Stdout, command.Stderr, command.ExtraFiles = log, log, append([]*os.File{wait}, m.inherited...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: m.flags, Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", m.name, err)
	}
	result := &started{name: m.name, process: command.Process, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // its state tells the same, and more
		result.err = fmt.Errorf("%s ended (%s); see %s", m.name, command.ProcessState, log.Name())
		close(result.ended)
	}()
	if err := network.Join(command.Process.Pid, m.name, m.ip, m.routes); err != nil {
		return nil, fmt.Errorf("network of %s: %w", m.name, err)
	}
	return result, nil
}

// AwaitNetwork waits until the parent has joined this process's network namespace: it closes its end of a pipe.
func AwaitNetwork() error {
	unix.CloseOnExec(networkFD)
	_, err := io.ReadAll(os.NewFile(networkFD, "network"))
	return err
}

// RunNode becomes a node that encoded, a node.Spec in JSON, describes.
func RunNode(encoded string) error {
	var spec node.Spec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		return err
	}
	if err := AwaitNetwork(); err != nil {
		return err
	}
	return node.Run(spec)
}

// RunExec waits for the network and becomes another program.
func RunExec(args []string) error {
	if err := AwaitNetwork(); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, os.Environ())
}
