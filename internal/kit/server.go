// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Health is what the process answers the kubelet with: alive once it serves,
// ready once MarkReady was called.
type Health struct{ isReady atomic.Bool }

// MarkReady says that the caches have synced and the work has begun.
func (h *Health) MarkReady() { h.isReady.Store(true) }

// Handler serves /healthz and /readyz.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(response http.ResponseWriter, _ *http.Request) {
		answer(response, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(response http.ResponseWriter, _ *http.Request) {
		if !h.isReady.Load() {
			answer(response, http.StatusServiceUnavailable, "the caches haven't synced yet")
			return
		}
		answer(response, http.StatusOK, "ok")
	})
	return mux
}

func answer(response http.ResponseWriter, code int, text string) {
	response.WriteHeader(code)
	// Whoever asked has gone if this fails.
	_, _ = fmt.Fprintln(response, text)
}

// Listen returns a listener on address; nil if address is "0" or empty, which
// turns the server off.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// Serve answers requests on listener until the context ends; at once if there
// is no listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	if listener == nil {
		return nil
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		// What is being answered is short; what isn't done in time is cut off.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}
