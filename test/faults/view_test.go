//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view is what an operator sees of the cluster in place of what is there.
type view struct {
	// resource is the one that is seen in another way, as it stands in a path: "pods".
	resource string
	// lag is how much later than everything else it is seen; zero for not at all
	// later.
	lag time.Duration
	// merges hides each state of an object that is followed by another one within
	// mergeTime.
	merges bool

	mu sync.Mutex
	// stalled is closed once what happens to the resource is to be seen again; nil if
	// it is seen.
	stalled chan struct{}
	// past is the version of the cluster that the first list of each resource shows;
	// empty for now. seen are the paths of those that were listed.
	past string
	seen map[string]bool
}

// mergeTime is how soon another state has to follow for one to be hidden.
const mergeTime = 300 * time.Millisecond

// stall has nothing of the resource be seen, until the function that it returns is
// called.
func (v *view) stall() (resume func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	stalled := make(chan struct{})
	v.stalled = stalled
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.stalled = nil
		close(stalled)
	}
}

// turnBack has all that is listed from now on be of a version of the cluster.
func (v *view) turnBack(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.past, v.seen = version, map[string]bool{}
}

// resourceOf is the resource that a path names: /api/v1/namespaces/N/pods, or
// /apis/GROUP/VERSION/namespaces/N/RESOURCE.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 0 && parts[0] == "api" {
		parts = parts[min(2, len(parts)):]
	} else {
		parts = parts[min(3, len(parts)):]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return ""
	}
	return parts[0]
}

// serve answers a list or a watch as the operator is to see it; false if that is as
// it is.
func (v *view) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) (isServed bool) {
	query := r.URL.Query()
	isWatch := query.Get("watch") == "true"
	v.mu.Lock()
	past := v.past
	if v.seen[r.URL.Path] {
		past = ""
	}
	isList := r.Method == http.MethodGet && !isWatch && query.Get("limit") != ""
	if isList && v.seen != nil {
		v.seen[r.URL.Path] = true
	}
	v.mu.Unlock()
	switch {
	case r.Method != http.MethodGet:
		return false
	case past != "" && isWatch && query.Get("sendInitialEvents") == "true":
		// The past is to be had by a list only.
		refuse(w, apierrors.NewInvalid(databaseKind(), "sendInitialEvents", nil))
		return true
	case past != "" && isList:
		query.Set("resourceVersion", past)
		query.Set("resourceVersionMatch", "Exact")
		query.Del("limit")
		r.URL.RawQuery = query.Encode()
		return false
	case isWatch && resourceOf(r.URL.Path) == v.resource:
		r.Header.Set("Accept", "application/json")
		v.watch(forward, w, r)
		return true
	}
	return false
}

// watch forwards the events of a watch, each when it is to be seen.
func (v *view) watch(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	reader, writer := io.Pipe()
	upstream := &pipedWriter{header: http.Header{}, body: writer, began: make(chan int, 1)}
	go func() {
		defer func() {
			// By this the proxy says that it was cut off.
			if reason := recover(); reason != nil && reason != http.ErrAbortHandler { //nolint:errorlint // it is the very value
				panic(reason)
			}
			upstream.WriteHeader(http.StatusOK)
			_ = writer.Close() // it never fails
		}()
		forward.ServeHTTP(upstream, r)
	}()
	status := <-upstream.began
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	flush(w)
	events := make(chan arrival, 10000)
	go func() {
		defer close(events)
		decoder := json.NewDecoder(reader)
		for {
			var event json.RawMessage
			if decoder.Decode(&event) != nil {
				return
			}
			events <- arrival{event, time.Now()}
		}
	}()
	v.show(w, r, events)
	_ = reader.Close() // it never fails
}

// arrival is an event of a watch, and when it came.
type arrival struct {
	event json.RawMessage
	at    time.Time
}

// show writes each event when it is to be seen.
func (v *view) show(w http.ResponseWriter, r *http.Request, events <-chan arrival) {
	for next := range events {
		v.mu.Lock()
		stalled := v.stalled
		v.mu.Unlock()
		if stalled != nil {
			select {
			case <-stalled:
			case <-r.Context().Done():
				return
			}
		}
		if v.lag > 0 {
			select {
			case <-time.After(time.Until(next.at.Add(v.lag))):
			case <-r.Context().Done():
				return
			}
		}
		event := next.event
		if v.merges {
			event = latest(event, events)
		}
		if _, err := w.Write(append(event, '\n')); err != nil {
			return
		}
		flush(w)
	}
}

// latest is the last of the events about one object that follow each other within
// mergeTime. What is about another one, or says more than that it changed, ends it.
func latest(event json.RawMessage, events <-chan arrival) json.RawMessage {
	if kindOf(event) != "MODIFIED" {
		return event
	}
	for {
		select {
		case next, isOpen := <-events:
			if !isOpen {
				return event
			}
			if kindOf(next.event) != "MODIFIED" || nameOf(next.event) != nameOf(event) {
				// Nothing is lost: both are written as one.
				return append(append(event, '\n'), next.event...)
			}
			event = next.event
		case <-time.After(mergeTime):
			return event
		}
	}
}

func kindOf(event json.RawMessage) string { return decoded(event).Type }

func nameOf(event json.RawMessage) string { return string(decoded(event).Object.UID) }

type watchEvent struct {
	Type   string                       `json:"type"`
	Object metav1.PartialObjectMetadata `json:"object"`
}

func decoded(event json.RawMessage) watchEvent {
	var all watchEvent
	if err := json.Unmarshal(event, &all); err != nil {
		return watchEvent{Type: fmt.Sprintf("unknown: %v", err)}
	}
	return all
}

func flush(w http.ResponseWriter) {
	if flusher, canFlush := w.(http.Flusher); canFlush {
		flusher.Flush()
	}
}

// pipedWriter hands an answer on as it comes.
type pipedWriter struct {
	header http.Header
	body   io.Writer
	once   sync.Once
	began  chan int
}

func (w *pipedWriter) Header() http.Header { return w.header }

func (w *pipedWriter) WriteHeader(status int) { w.once.Do(func() { w.began <- status }) }

func (w *pipedWriter) Write(content []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(content)
}

// Flush does nothing: a pipe keeps nothing back.
func (w *pipedWriter) Flush() {}
