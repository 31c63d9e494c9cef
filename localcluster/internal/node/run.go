// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coolops.cn/database-manager/localcluster/internal/cgroup"
	"coolops.cn/database-manager/localcluster/internal/filelock"
	"coolops.cn/database-manager/localcluster/internal/networkpolicy"
)

// Run turns this process, the first of its pid, mount, network and UTS namespaces, into the node. It returns when
// told to stop by SIGTERM, or with an error when the node can't be set up; either way the kernel ends the rest.
func Run(spec Spec) error {
	alive, err := filelock.Lock(context.Background(), spec.AliveFile(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = alive.Close() }() // nothing is written
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := cgroup.Create(spec.Cgroup); err != nil {
		return err
	}
	services, err := spec.services()
	if err != nil {
		return err
	}
	if err := spec.enterRoot(); err != nil {
		return err
	}
	// Pods are routed through the node, in this network namespace only.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	if err := networkpolicy.Close(context.Background(), spec.PodCIDR); err != nil {
		return fmt.Errorf("isolate pods until their policies are known: %w", err)
	}
	return supervise(services)
}

// services are the node's programs, in the order in which they are started.
func (s Spec) services() ([]*service, error) {
	containerd := &service{
		name: "containerd", args: []string{"/usr/bin/containerd", "--config=/etc/containerd/config.toml"},
		ready: func() bool { return answers(socketPath) },
	}
	kubelet := &service{name: "kubelet", args: []string{
		kubeletPath, "--config=" + etcKubernetes + "/kubelet.yaml", "--kubeconfig=" + etcKubernetes + "/kubelet.kubeconfig",
		"--hostname-override=" + s.Name, "--node-ip=" + s.IP.String(), "--v=2",
	}}
	kubeProxy := &service{name: "kube-proxy", args: []string{kubeProxyPath, "--config=" + etcKubernetes + "/kube-proxy.yaml"}}
	// It is this program itself, which is out of sight in the node's root.
	networkPolicy := &service{name: "network-policy", args: []string{
		"/proc/self/exe", NetworkPolicyCommand, s.Name, s.PodCIDR, etcKubernetes + "/network-policy.kubeconfig",
	}}
	sizedVolume := &service{name: "sized-volume", args: []string{
		"/proc/self/exe", SizedVolumeCommand, s.Name, etcKubernetes + "/sized-volume.kubeconfig",
	}}
	// Disks are mounted before the kubelet looks for them.
	all := []*service{sizedVolume, containerd, kubelet, kubeProxy, networkPolicy}
	for _, service := range all {
		// Opened here: the host's files aren't in sight later.
		log, err := os.OpenFile(filepath.Join(s.Logs, s.Name+"-"+service.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		service.log = log
	}
	return all, nil
}

func answers(socket string) bool {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// service is a program that is started again when it ends.
type service struct {
	name  string
	args  []string
	log   *os.File
	ready func() bool
	pid   int
}

const (
	restartDelay = time.Second
	startTimeout = time.Minute
	pollInterval = 20 * time.Millisecond
)

// supervise starts the services in order and keeps them running. As the first process of its namespace it also
// reaps what others leave behind, so every exit is collected in this one place.
func supervise(services []*service) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	restart := make(chan *service, len(services))
	for _, service := range services {
		if err := service.start(); err != nil {
			return err
		}
		if err := service.waitReady(); err != nil {
			return err
		}
	}
	for {
		select {
		case received := <-signals:
			if received != unix.SIGCHLD {
				return nil
			}
			for _, ended := range reap(services) {
				time.AfterFunc(restartDelay, func() { restart <- ended })
			}
		case service := <-restart:
			if err := service.start(); err != nil {
				return err
			}
		}
	}
}

func (s *service) start() error {
	null, err := os.Open("/dev/null")
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	s.pid, err = syscall.ForkExec(s.args[0], s.args, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Files: []uintptr{null.Fd(), s.log.Fd(), s.log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	return nil
}

func (s *service) waitReady() error {
	if s.ready == nil {
		return nil
	}
	deadline := time.After(startTimeout)
	for !s.ready() {
		select {
		case <-deadline:
			return fmt.Errorf("%s did not answer within %s: see %s", s.name, startTimeout, s.log.Name())
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// reap collects every process that has ended and returns the services among them.
func reap(services []*service) []*service {
	var ended []*service
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return ended
		}
		for _, service := range services {
			if service.pid == pid {
				fmt.Fprintf(service.log, "localcluster: %s ended (status %d, signal %v); it is started again in %s\n", service.name, status.ExitStatus(), status.Signal(), restartDelay)
				service.pid = 0
				ended = append(ended, service)
			}
		}
	}
}
