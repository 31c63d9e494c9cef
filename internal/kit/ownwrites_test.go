// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// fakeStore is a cache that has come as far as version.
type fakeStore struct {
	cache.Store
	version string
}

func (s *fakeStore) LastStoreSyncResourceVersion() string { return s.version }

func aPod(version string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "shop", UID: uid, ResourceVersion: version}}
}

func newRecord(version string) (*OwnWrites, *fakeStore) {
	store := &fakeStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), version: version}
	writes := NewOwnWrites()
	writes.Watch(corev1.Resource("pods"), metav1.NamespaceAll, store)
	return writes, store
}

func TestAKeyIsBehindUntilItsCacheHasSeenItsLastWrite(t *testing.T) {
	writes, store := newRecord("9")
	writes.Wrote(orders(), corev1.Resource("pods"), aPod("11", "a"))
	writes.Wrote(orders(), corev1.Resource("pods"), aPod("10", "a"))
	for version, want := range map[string]string{"9": "pods", "10": "pods"} {
		store.version = version
		if got := writes.Behind(orders()); got != want {
			t.Errorf("at %s the key is behind in %q, want %q", version, got, want)
		}
	}
	if got := writes.Behind(cache.NewObjectName("shop", "other")); got != "" {
		t.Errorf("another key is behind in %q", got)
	}
	store.version = "11"
	if got := writes.Behind(orders()); got != "" {
		t.Errorf("at 11 the key is behind in %q", got)
	}
	if len(writes.written) > 0 {
		t.Error("what has been seen is still remembered")
	}
}

func TestAKeyIsBehindUntilWhatItDeletedIsSeenToGo(t *testing.T) {
	writes, store := newRecord("9")
	gone := aPod("8", "a")
	if err := store.Add(gone); err != nil {
		t.Fatal(err)
	}
	writes.Deleted(orders(), corev1.Resource("pods"), cache.NewObjectName("shop", "db-0"), "a")
	if got := writes.Behind(orders()); got != "pods" {
		t.Errorf("the key is behind in %q, want pods", got)
	}
	terminating := gone.DeepCopy()
	terminating.DeletionTimestamp = new(metav1.Now())
	for sentence, seen := range map[string]*corev1.Pod{"it is going": terminating, "another has its name": aPod("12", "b")} {
		if err := store.Update(seen); err != nil {
			t.Fatal(err)
		}
		writes.Deleted(orders(), corev1.Resource("pods"), cache.NewObjectName("shop", "db-0"), "a")
		if got := writes.Behind(orders()); got != "" {
			t.Errorf("when %s, the key is behind in %q", sentence, got)
		}
	}
}

func TestAWriteThatNoCacheShowsIsNotWaitedFor(t *testing.T) {
	writes, _ := newRecord("9")
	writes.Wrote(orders(), corev1.Resource("secrets"), aPod("11", "a"))
	writes.Wrote(orders(), corev1.Resource("pods"), aPod("not a number", "a"))
	if got := writes.Behind(orders()); got != "" {
		t.Errorf("the key is behind in %q", got)
	}
}

func TestACacheThatDoesntSayHowFarItIsIsRefused(t *testing.T) {
	writes, store := newRecord("")
	if err := writes.Check(); err == nil || !strings.Contains(err.Error(), "AtomicFIFO") {
		t.Errorf("got %v", err)
	}
	store.version = "1"
	if err := writes.Check(); err != nil {
		t.Errorf("got %v", err)
	}
}
