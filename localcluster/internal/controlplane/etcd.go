// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"

	"coolops.cn/database-manager/localcluster/internal/unixsocket"
)

// startEtcd starts a one-member etcd on free loopback ports and returns its client URL once it serves. Its metrics are
// also read on a socket in the file system, which is the same inside and outside of a network namespace.
// It writes without fsync: what survives is a crash of the process, not of the machine.
func (c *Config) startEtcd(ctx context.Context) (*embed.Etcd, string, error) {
	loopback := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Name, config.Dir = "localcluster", c.DataDir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{loopback}, []url.URL{loopback}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{loopback}, []url.URL{loopback}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	config.AutoCompactionMode, config.AutoCompactionRetention = "periodic", "5m"
	if c.EtcdMetrics != "" {
		address, err := unixsocket.Address(c.EtcdMetrics)
		if err != nil {
			return nil, "", fmt.Errorf("socket of etcd's metrics: %w", err)
		}
		config.ListenMetricsUrls = []url.URL{{Scheme: "unix", Host: address}}
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, "http://" + etcd.Clients[0].Addr().String(), nil
	case err := <-etcd.Err():
		return nil, "", fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		etcd.Close()
		return nil, "", ctx.Err()
	}
}
