// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"net/http/pprof"
)

// ProfileHandler serves the profiles of the process below /debug/pprof, for go
// tool pprof. Whoever reaches it may have the process work for a long time, and see
// what is in its memory.
func ProfileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}
