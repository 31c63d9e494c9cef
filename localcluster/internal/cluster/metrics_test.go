// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"coolops.cn/database-manager/localcluster/internal/unixsocket"
)

// serveMetrics answers in the place of a control plane.
func serveMetrics(t *testing.T, c *Cluster, handler http.HandlerFunc) {
	t.Helper()
	address, err := unixsocket.Address(c.etcdMetricsSocket())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func TestEtcdMetricsAreCopied(t *testing.T) {
	c := openRunning(t, t.TempDir())
	var metrics strings.Builder
	mustSay(t, c.WriteEtcdMetrics(t.Context(), &metrics), "the control plane is away, or starts")
	answer := http.StatusOK
	serveMetrics(t, c, func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/metrics" {
			t.Errorf("it asks for %s", request.URL)
		}
		writer.WriteHeader(answer)
		_, _ = writer.Write([]byte("etcd_mvcc_put_total 7\n")) // what is lost is missed below
	})
	mustSay(t, c.WriteEtcdMetrics(t.Context(), &metrics), "")
	if metrics.String() != "etcd_mvcc_put_total 7\n" {
		t.Errorf("they are %q", metrics.String())
	}
	answer = http.StatusServiceUnavailable
	mustSay(t, c.WriteEtcdMetrics(t.Context(), &metrics), "503")
	mustSay(t, open(t).WriteEtcdMetrics(t.Context(), &metrics), "localcluster up --name unit")
}
