// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve answers calls on a Unix socket, until the function that it returns is
// called.
func Serve(socket string, servers Servers) (stop func() error, err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-r.Context().Done() // of who waits for the end, or of the end
				return
			}
			var call Call
			if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(servers.Answer(r.Context(), call)) // an operator that has gone needs no answer
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
