// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
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
	if _, err := NewSlimmer().Slim(pod); err != nil || pod.ManagedFields != nil {
		t.Errorf("got %v and %v", pod.ManagedFields, err)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/db-0"}
	if got, err := NewSlimmer().Slim(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("got %v and %v for a tombstone", got, err)
	}
}

// TestALongTextIsThereOnce looks at where the texts of two ConfigMaps are in memory.
func TestALongTextIsThereOnce(t *testing.T) {
	slimmer := NewSlimmer()
	slim := func(text string) string {
		// A copy of its own, as it comes from a watch.
		config := &corev1.ConfigMap{Data: map[string]string{"boot.sh": strings.Clone(text)}}
		if _, err := slimmer.Slim(config); err != nil {
			t.Fatal(err)
		}
		return config.Data["boot.sh"]
	}
	for sentence, row := range map[string]struct {
		text, other string
		isShared    bool
	}{
		"of the same content":     {strings.Repeat("a", sharedLength), strings.Repeat("a", sharedLength), true},
		"but not a short one":     {"a", "a", false},
		"nor one that is another": {strings.Repeat("b", sharedLength), strings.Repeat("c", sharedLength), false},
	} {
		text, other := slim(row.text), slim(row.other)
		if text != row.text || other != row.other {
			t.Errorf("%s: %q and %q became %q and %q", sentence, row.text, row.other, text, other)
		}
		if isShared := unsafe.StringData(text) == unsafe.StringData(other); isShared != row.isShared {
			t.Errorf("%s: one copy is %t, want %t", sentence, isShared, row.isShared)
		}
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
