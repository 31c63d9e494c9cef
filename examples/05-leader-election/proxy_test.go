//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// request is one that a candidate sent, and how it was answered.
type request struct {
	method, path    string
	began, answered time.Time
	status          int // 0 until it is answered
}

// proxy stands between a candidate and the API server.
type proxy struct {
	kubeconfig string
	server     *httptest.Server

	mu       sync.Mutex
	requests []*request
	// meet is what a request meets before it goes on; nil for nothing.
	meet func(*http.Request)
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := newProxyAt(t, "127.0.0.1:0")
	p.server.Start()
	return p
}

// newProxyAt makes a proxy that isn't started.
func newProxyAt(t *testing.T, address string) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the candidate gave up
		},
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(forward, w, r)
	}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.server.Listener.Close() // in favour of the one at the address
	p.server.Listener = listener
	p.kubeconfig = writeKubeconfig(t, func(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		*cluster = clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
		*user = clientcmdapi.AuthInfo{}
	})
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	seen := &request{method: r.Method, path: r.URL.Path, began: time.Now()}
	p.mu.Lock()
	p.requests = append(p.requests, seen)
	meet := p.meet
	p.mu.Unlock()
	// The server sees that a sender gave up only once it has read the request.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if meet != nil {
		meet(r)
	}
	answer := &statusWriter{ResponseWriter: w}
	// Once sent, a request is on its way, whatever becomes of its sender.
	forward.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	p.mu.Lock()
	defer p.mu.Unlock()
	seen.status, seen.answered = answer.status, time.Now()
}

// set says what requests meet from now on.
func (p *proxy) set(meet func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meet = meet
}

// hang keeps a request for ever, as a network does that drops all packets.
func hang(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// abort closes the connection.
func abort(*http.Request) { panic(http.ErrAbortHandler) }

// shut closes the connections, and refuses new ones.
func (p *proxy) shut() {
	_ = p.server.Listener.Close() // it is closed again when the test ends
	p.server.CloseClientConnections()
}

// updates returns the successful updates of a kind of object.
func (p *proxy) updates(resource string) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []request
	for _, r := range p.requests {
		if r.method == http.MethodPut && strings.Contains(r.path, "/"+resource+"/") && r.status/100 == 2 {
			found = append(found, *r)
		}
	}
	return found
}

// lastRenewal tells when the last write of the lease was sent that was successful.
func (p *proxy) lastRenewal(t *testing.T) time.Time {
	t.Helper()
	renewals := p.updates("leases")
	if len(renewals) == 0 {
		t.Fatal("the lease was never renewed")
	}
	return renewals[len(renewals)-1].began
}

// acquired tells when the first write of the lease was sent that was successful.
func (p *proxy) acquired(t *testing.T) time.Time {
	t.Helper()
	writes := p.updates("leases")
	if len(writes) == 0 {
		t.Fatal("the lease was never acquired")
	}
	return writes[0].began
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
