// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

func TestAFirstListIsConsistent(t *testing.T) {
	for sentence, row := range map[string]struct{ options, want metav1.ListOptions }{
		"a list from any cache becomes one from the store":   {metav1.ListOptions{ResourceVersion: "0"}, metav1.ListOptions{}},
		"a list at a version stays":                          {metav1.ListOptions{ResourceVersion: "7"}, metav1.ListOptions{ResourceVersion: "7"}},
		"a streamed list, which is consistent anyway, stays": {metav1.ListOptions{ResourceVersion: "0", SendInitialEvents: new(true)}, metav1.ListOptions{ResourceVersion: "0", SendInitialEvents: new(true)}},
	} {
		t.Run(sentence, func(t *testing.T) {
			row.want.LabelSelector = "a=b"
			SelectedList(labels.SelectorFromSet(labels.Set{"a": "b"}))(&row.options)
			if row.options.ResourceVersion != row.want.ResourceVersion || row.options.LabelSelector != row.want.LabelSelector {
				t.Errorf("got %+v, want %+v", row.options, row.want)
			}
		})
	}
}

func TestManagedFieldsAreDropped(t *testing.T) {
	pod := aPod("1", "a")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	if _, err := DropManagedFields(pod); err != nil || pod.ManagedFields != nil {
		t.Errorf("got %v and %v", pod.ManagedFields, err)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/db-0"}
	if got, err := DropManagedFields(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("got %v and %v for a tombstone", got, err)
	}
}

func TestReadinessFollowsTheCaches(t *testing.T) {
	health := &Health{}
	ask := func(path string) int {
		response := httptest.NewRecorder()
		health.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return response.Code
	}
	if ask("/healthz") != http.StatusOK || ask("/readyz") != http.StatusServiceUnavailable {
		t.Errorf("before: healthz %d, readyz %d", ask("/healthz"), ask("/readyz"))
	}
	health.MarkReady()
	if ask("/readyz") != http.StatusOK {
		t.Errorf("after: readyz %d", ask("/readyz"))
	}
}

func TestAnAddressOfZeroTurnsAServerOff(t *testing.T) {
	for _, address := range []string{"", "0"} {
		if listener, err := Listen(t.Context(), address); listener != nil || err != nil {
			t.Errorf("%q gives %v and %v", address, listener, err)
		}
	}
	if err := Serve(t.Context(), nil, http.NotFoundHandler()); err != nil {
		t.Errorf("serving on nothing: %v", err)
	}
}
