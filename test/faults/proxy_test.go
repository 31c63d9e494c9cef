//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// request is one request that an operator sent.
type request struct {
	at     time.Time
	method string
	path   string
	query  url.Values
	// status is that of the API server's answer; 0 if it never came.
	status int
}

func (r request) String() string { return fmt.Sprintf("%s %s %d", r.method, r.path, r.status) }

func (r request) isWrite() bool { return r.method != http.MethodGet }

func (r request) isWatch() bool { return r.query.Get("watch") == "true" }

// isResumed tells whether a watch goes on from a version, rather than beginning
// with what exists.
func (r request) isResumed() bool { return r.isWatch() && r.query.Get("sendInitialEvents") != "true" }

func (r request) isLease() bool { return strings.Contains(r.path, "/leases") }

func (r request) isEvent() bool { return strings.Contains(r.path, "/events") }

// isWork tells whether the request writes something that users see.
func (r request) isWork() bool { return r.isWrite() && !r.isLease() && !r.isEvent() }

// verdict is what happens to a request.
type verdict int

const (
	pass verdict = iota
	// dieBefore kills the operator, and the request is never sent.
	dieBefore
	// dieAfter sends the request, and kills the operator in place of an answer.
	dieAfter
	// expire answers, once released, that the version which a watch wants to go on
	// from is too old.
	expire
)

// proxy stands between one operator and the API server.
type proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []request
	// judge decides about each request; nil lets all pass.
	judge func(request) verdict
	kill  func()
	// released is closed when watches that are to expire may be answered.
	released chan struct{}
}

// newProxy starts a proxy that speaks plain HTTP to the operator and, as an
// administrator, TLS to the API server.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(env.config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(env.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{released: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			// By this the audit log tells the operators apart.
			r.Out.Header.Set("User-Agent", r.In.UserAgent()+" "+p.name())
		},
		Transport:     transport,
		FlushInterval: -1, // each event of a watch goes on at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	t.Cleanup(func() {
		p.server.CloseClientConnections() // watches would never end
		p.server.Close()
	})
	return p
}

// name tells this proxy, and so its operator, from others.
func (p *proxy) name() string { return p.server.Listener.Addr().String() }

func (p *proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	decided, index := p.record(request{at: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.Query()})
	switch decided {
	case dieBefore:
		p.kill()
		panic(http.ErrAbortHandler)
	case dieAfter:
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		p.answered(index, answer.Code)
		p.kill()
		panic(http.ErrAbortHandler)
	case expire:
		<-p.released
		gone := apierrors.NewResourceExpired("too old resource version").Status()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(gone) // an operator that has gone needs no answer
		p.answered(index, http.StatusGone)
	default:
		answer := &statusWriter{ResponseWriter: w}
		defer func() { p.answered(index, answer.status) }()
		forward.ServeHTTP(answer, r)
	}
}

func (p *proxy) record(seen request) (verdict, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, seen)
	if p.judge == nil {
		return pass, len(p.requests) - 1
	}
	return p.judge(seen), len(p.requests) - 1
}

func (p *proxy) answered(index, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[index].status = status
}

// seen returns the requests so far that want accepts.
func (p *proxy) seen(want func(request) bool) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests), func(r request) bool { return !want(r) })
}

// setJudge says what decides about requests from now on.
func (p *proxy) setJudge(judge func(request) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Flush lets each event of a watch go on at once.
func (w *statusWriter) Flush() {
	if flusher, canFlush := w.ResponseWriter.(http.Flusher); canFlush {
		flusher.Flush()
	}
}
