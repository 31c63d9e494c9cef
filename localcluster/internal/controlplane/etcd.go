// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts a one-member etcd on free loopback ports and returns its client URL once it serves.
// It writes without fsync: what survives is a crash of the process, not of the machine.
func startEtcd(ctx context.Context, dataDir string) (*embed.Etcd, string, error) {
	loopback := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Name, config.Dir = "localcluster", dataDir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{loopback}, []url.URL{loopback}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{loopback}, []url.URL{loopback}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	config.AutoCompactionMode, config.AutoCompactionRetention = "periodic", "5m"
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
