// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// OwnWrites remembers what was written on behalf of each key, so that no key is
// synced on a cache that is older: it would see that a thing is missing which
// it has just made, and make it again.
type OwnWrites struct {
	mu      sync.Mutex
	stores  map[source]cache.Store
	written map[cache.ObjectName]*record
}

// source is the type, and the namespace, that one informer watches.
type source struct {
	resource  schema.GroupResource
	namespace string
}

// record is what was written for one key since it was last found up to date.
type record struct {
	versions map[source]string
	deleted  map[deletion]bool
}

// deletion is an object that is to go.
type deletion struct {
	source source
	name   cache.ObjectName
	uid    types.UID
}

// NewOwnWrites returns an empty record.
func NewOwnWrites() *OwnWrites {
	return &OwnWrites{stores: map[source]cache.Store{}, written: map[cache.ObjectName]*record{}}
}

// Watch says that store holds the objects of a resource in a namespace, or in
// all of them if namespace is empty. Writes to what isn't watched are not
// recorded: nothing would ever show that they have been seen.
func (w *OwnWrites) Watch(resource schema.GroupResource, namespace string, store cache.Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stores[source{resource, namespace}] = store
}

// Check tells whether every store says how far it has come. It is called once
// after the first list; without that, Behind would never find anything.
func (w *OwnWrites) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for source, store := range w.stores {
		if store.LastStoreSyncResourceVersion() == "" {
			return fmt.Errorf("the cache of %s doesn't say how far it has come: the client-go feature AtomicFIFO has to be on", source.resource)
		}
	}
	return nil
}

// Wrote records that an object of the resource was written for key.
func (w *OwnWrites) Wrote(key cache.ObjectName, resource schema.GroupResource, object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, isWatched := w.sourceOf(resource, object.GetNamespace())
	if !isWatched {
		return
	}
	record := w.recordOf(key)
	if isOlder(record.versions[from], object.GetResourceVersion()) {
		record.versions[from] = object.GetResourceVersion()
	}
}

// Deleted records that an object of the resource was asked to go for key.
func (w *OwnWrites) Deleted(key cache.ObjectName, resource schema.GroupResource, object cache.ObjectName, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from, isWatched := w.sourceOf(resource, object.Namespace); isWatched {
		w.recordOf(key).deleted[deletion{from, object, uid}] = true
	}
}

// Behind returns the first resource whose cache doesn't show yet what was
// written for key; "" if there is none.
func (w *OwnWrites) Behind(key cache.ObjectName) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	record := w.written[key]
	if record == nil {
		return ""
	}
	for from, version := range record.versions {
		if isOlder(w.stores[from].LastStoreSyncResourceVersion(), version) {
			return from.resource.String()
		}
	}
	for gone := range record.deleted {
		if w.isStillThere(gone) {
			return gone.source.resource.String()
		}
	}
	delete(w.written, key)
	return ""
}

// Forget drops what was recorded for a key that is gone.
func (w *OwnWrites) Forget(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, key)
}

func (w *OwnWrites) sourceOf(resource schema.GroupResource, namespace string) (source, bool) {
	for _, from := range []source{{resource, namespace}, {resource, metav1.NamespaceAll}} {
		if w.stores[from] != nil {
			return from, true
		}
	}
	return source{}, false
}

func (w *OwnWrites) recordOf(key cache.ObjectName) *record {
	if w.written[key] == nil {
		w.written[key] = &record{versions: map[source]string{}, deleted: map[deletion]bool{}}
	}
	return w.written[key]
}

// isStillThere tells whether the cache shows the object as if nobody had asked
// it to go.
func (w *OwnWrites) isStillThere(gone deletion) bool {
	cached, exists, err := w.stores[gone.source].GetByKey(gone.name.String())
	if err != nil || !exists {
		return false
	}
	object, isObject := cached.(metav1.Object)
	return isObject && object.GetUID() == gone.uid && object.GetDeletionTimestamp() == nil
}

// isOlder tells whether resource version a is older than b. No version at all
// is older than any; versions that can't be compared are never called older,
// since nothing would end the wait.
func isOlder(a, b string) bool {
	if a == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
