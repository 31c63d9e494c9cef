// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProfilesAreServed(t *testing.T) {
	for path, row := range map[string]struct {
		code int
		part string
	}{
		"/debug/pprof/":                   {http.StatusOK, "goroutine"},
		"/debug/pprof/heap?gc=1&debug=1":  {http.StatusOK, "# HeapAlloc = "},
		"/debug/pprof/goroutine?debug=1":  {http.StatusOK, "TestProfilesAreServed"},
		"/debug/pprof/trace?seconds=0.01": {http.StatusOK, ""},
		"/debug/pprof/cmdline":            {http.StatusNotFound, ""},
		"/metrics":                        {http.StatusNotFound, ""},
	} {
		answer := httptest.NewRecorder()
		ProfileHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != row.code || !strings.Contains(answer.Body.String(), row.part) {
			t.Errorf("%s: got %d and %.200q, want %d and %q", path, answer.Code, answer.Body, row.code, row.part)
		}
	}
}
