//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// request is one request that an operator sent.
type request struct {
	at     time.Time
	method string
	path   string
	query  url.Values
	// body is what is sent with a deletion, which says what it may delete; hash is of
	// what is sent with any write.
	body []byte
	hash string
	// status is that of the API server's answer; 0 if it never came.
	status int
}

func (r request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %d %s", r.method, r.path, r.status, r.hash))
}

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
	// lose sends the request, and cuts the connection in place of an answer.
	lose
	// What follows answers in the API server's place, as it does where the object has
	// changed meanwhile, there are too many requests, it is overloaded, the operator
	// has no right, or the object isn't valid.
	conflict
	throttle
	overload
	forbid
	reject
	// hold keeps the request until it is released, and sends it then.
	hold
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
	// view is what the operator sees in place of what is there; nil if it is that.
	view *view
	// released is closed when watches that are to expire may be answered, and requests
	// that are held may be sent.
	released chan struct{}
}

// newProxy starts a proxy that speaks HTTP/2 over TLS to both, and is an administrator
// to the API server.
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
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	p.server.EnableHTTP2 = true
	// Operators that are killed break their connections, and so does a control plane.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	forward.ErrorLog = p.server.Config.ErrorLog
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections() // watches would never end
		p.server.Close()
	})
	return p
}

// name tells this proxy, and so its operator, from others.
func (p *proxy) name() string { return p.server.Listener.Addr().String() }

func (p *proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	seen := request{at: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.Query()}
	if seen.isWrite() {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		sum := sha256.Sum256(body)
		seen.hash = hex.EncodeToString(sum[:6])
		if r.Method == http.MethodDelete {
			seen.body = body
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	decided, index := p.record(seen)
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
	case lose:
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		p.answered(index, answer.Code)
		panic(http.ErrAbortHandler)
	case expire:
		<-p.released
		p.refuse(w, index, apierrors.NewResourceExpired("too old resource version"))
	case conflict:
		p.refuse(w, index, apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("the object has been modified")))
	case throttle:
		p.refuse(w, index, apierrors.NewTooManyRequests("too many requests", 1))
	case overload:
		p.refuse(w, index, apierrors.NewServiceUnavailable("the server is overloaded"))
	case forbid:
		p.refuse(w, index, apierrors.NewForbidden(schema.GroupResource{}, "it", errors.New("no such right")))
	case reject:
		p.refuse(w, index, apierrors.NewInvalid(databaseKind(), "it", nil))
	case hold:
		// The operator may have given up by then, and the request is sent all the same.
		<-p.released
		late := r.Clone(context.WithoutCancel(r.Context()))
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, late)
		p.answered(index, answer.Code)
		panic(http.ErrAbortHandler)
	default:
		answer := &statusWriter{ResponseWriter: w}
		defer func() { p.answered(index, answer.status) }()
		if p.view == nil || !p.view.serve(forward, answer, r) {
			forward.ServeHTTP(answer, r)
		}
	}
}

// refuse answers in the API server's place.
func (p *proxy) refuse(w http.ResponseWriter, index int, refusal *apierrors.StatusError) {
	p.answered(index, refuse(w, refusal))
}

func refuse(w http.ResponseWriter, refusal *apierrors.StatusError) (code int) {
	status := refusal.Status()
	w.Header().Set("Content-Type", "application/json")
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // an operator that has gone needs no answer
	return int(status.Code)
}

// databaseKind is the kind of what an invented answer is about.
func databaseKind() schema.GroupKind {
	return schema.GroupKind{Group: v1alpha1.GroupName, Kind: "DatabaseManager"}
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
