// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs etcd, the API server, the controller manager and the scheduler of Kubernetes
// in one process. Their cobra commands aren't used: each may set up signal handling once a process only.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/localcluster/internal/kwok"
	"coolops.cn/database-manager/localcluster/internal/process"
)

const (
	// readyTimeout bounds the API server's start; 3 s is usual, a loaded machine takes longer.
	readyTimeout = 2 * time.Minute
	// stopTimeout bounds each stage's stop: the API server would wait up to 60 s for open watches.
	stopTimeout = 5 * time.Second
)

// Run starts the control plane and blocks until ctx ends or a component does.
// It stops in reverse: the API server's clients first, then the API server, then etcd.
func Run(ctx context.Context, config Config) error {
	// Log settings are process-wide, and every component applies the same ones.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := process.KeepInherited(); err != nil {
		return err
	}
	etcd, etcdURL, err := config.startEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()

	ended := make(chan error, 5)
	apiServer := newStage(ended)
	defer apiServer.stop()
	apiServer.start("kube-apiserver", func(ctx context.Context) error { return config.runAPIServer(ctx, etcdURL) })
	if err := config.waitReady(ctx, ended); err != nil {
		return err
	}
	klog.InfoS("API server is ready", "address", config.BindAddress, "port", config.Port)

	clients := newStage(ended)
	defer clients.stop()
	clients.start("kube-controller-manager", config.runControllerManager)
	clients.start("kube-scheduler", config.runScheduler)
	if config.VolumesDir != "" {
		clients.start("volume-provisioner", config.runVolumeProvisioner)
	}
	if config.Kwok != "" {
		player := kwok.Kwok{Program: config.Kwok, Kubeconfig: config.pki("kwok.kubeconfig"), Log: config.KwokLog, NodeLostAfter: config.NodeLostAfter}
		clients.start("kwok", player.Run)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	case err := <-etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	}
}

// waitReady polls /readyz until it answers 200, a component ends, or readyTimeout has passed.
func (c *Config) waitReady(ctx context.Context, ended <-chan error) error {
	client, err := c.httpClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("https://%s:%d/readyz", c.BindAddress, c.Port)
	deadline := time.After(readyTimeout)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-deadline:
			return fmt.Errorf("API server not ready within %s", readyTimeout)
		case <-time.After(50 * time.Millisecond):
		}
		response, err := client.Get(url)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
}

func (c *Config) httpClient() (*http.Client, error) {
	authority, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	certificate, err := tls.LoadX509KeyPair(c.pki("admin.crt"), c.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}}
	return &http.Client{Timeout: 2 * time.Second, Transport: transport}, nil
}

// parseFlags gives a component's flags their command line.
func parseFlags(component string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return nil
}
