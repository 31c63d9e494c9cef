// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"coolops.cn/database-manager/localcluster/internal/unixsocket"
)

// etcdMetricsSocket is where the control plane serves etcd's metrics, in every cluster.
func (c *Cluster) etcdMetricsSocket() string { return c.path("etcd-metrics.sock") }

// WriteEtcdMetrics copies etcd's metrics, in the text format of Prometheus. They count from the control plane's last start.
func (c *Cluster) WriteEtcdMetrics(ctx context.Context, out io.Writer) error {
	if _, err := c.runningConfig(); err != nil {
		return err
	}
	address, err := unixsocket.Address(c.etcdMetricsSocket())
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", address)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/metrics", http.NoBody)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("read etcd's metrics: %w; the control plane is away, or starts", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("read etcd's metrics: it answers %s", response.Status)
	}
	_, err = io.Copy(out, response.Body)
	return err
}
