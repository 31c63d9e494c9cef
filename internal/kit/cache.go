// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// View is what a controller sees of the cluster: the caches that it has opened.
type View struct {
	// OwnWrites knows how far each cache has come.
	OwnWrites     *OwnWrites
	registrations []cache.ResourceEventHandlerRegistration
}

// NewView returns a view without caches.
func NewView() *View { return &View{OwnWrites: NewOwnWrites()} }

// Wait waits until every handler was given everything that exists, and checks
// that the caches say how far they have come.
func (v *View) Wait(ctx context.Context) error {
	checkers := make([]cache.DoneChecker, 0, len(v.registrations))
	for _, registration := range v.registrations {
		checkers = append(checkers, registration.HasSyncedChecker())
	}
	if !cache.WaitFor(ctx, "", checkers...) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	return v.OwnWrites.Check()
}

// Cache holds the objects of one type, of all namespaces or of those that are
// watched. The zero value is an empty one.
type Cache[T Object] struct {
	// indexers are by namespace; the one of all namespaces is under NamespaceAll.
	indexers map[string]cache.TypedIndexer[T]
}

// Change tells what a handler is called for.
type Change struct {
	// IsDeleted is true if the object is gone; it is given as it was last known.
	IsDeleted bool
	// IsInitial is true for what existed before the cache was filled. It can wait.
	IsInitial bool
	// IsStatusOnly is true if nothing changed that a user asks for: neither the
	// spec, by its generation, nor labels, annotations, owners or deletion. It
	// can wait, too. It is meant for types that count generations.
	IsStatusOnly bool
}

// CanWait tells whether what just changed elsewhere goes first.
func (c Change) CanWait() bool { return c.IsInitial || c.IsStatusOnly }

// handler calls notify whenever an object appears, changes or goes. An object
// that went away unseen is given as it was last known; one that was never known
// isn't given at all, since nothing is left to find its owner by: whatever relies
// on it finds it missing when it is synced. A change from one object to another
// of the same name is given as both.
type handler[T Object] struct {
	notify func(object T, change Change)
	// logger is the process's: client-go calls handlers without a context.
	logger klog.Logger
}

// tell calls notify. By now the informer's store shows the change.
func (h handler[T]) tell(object T, change Change) {
	if logger := h.logger.V(levelWatch); logger.Enabled() {
		logger.Info("Handling", "type", fmt.Sprintf("%T", object), "object", cache.MetaObjectToName(object),
			"resourceVersion", object.GetResourceVersion(), "change", change)
	}
	h.notify(object, change)
}

// OnAdd is called for an object that appears.
func (h handler[T]) OnAdd(object T, isInInitialList bool) {
	h.tell(object, Change{IsInitial: isInInitialList})
}

// OnUpdate is called for an object that changes.
func (h handler[T]) OnUpdate(old, object T) {
	if old.GetUID() != object.GetUID() {
		h.tell(old, Change{IsDeleted: true})
		h.tell(object, Change{})
		return
	}
	h.tell(object, Change{IsStatusOnly: isStatusOnly(old, object)})
}

// OnDelete is called for an object that goes.
func (h handler[T]) OnDelete(deleted cache.DeletedObject[T]) {
	var none T
	if deleted.OptionalObj != none {
		h.tell(deleted.OptionalObj, Change{IsDeleted: true})
	}
}

func isStatusOnly(old, object metav1.Object) bool {
	return object.GetGeneration() != 0 && old.GetGeneration() == object.GetGeneration() &&
		old.GetDeletionTimestamp().Equal(object.GetDeletionTimestamp()) &&
		maps.Equal(old.GetLabels(), object.GetLabels()) &&
		maps.Equal(old.GetAnnotations(), object.GetAnnotations()) &&
		equality.Semantic.DeepEqual(old.GetOwnerReferences(), object.GetOwnerReferences())
}

// Open adds the objects of an informer, which watches namespace, to a cache and
// to a view. notify is called whenever one of them changes.
func Open[T Object](view *View, into *Cache[T], namespace string, informer cache.TypedSharedIndexInformer[T],
	resource schema.GroupResource, indexers cache.TypedIndexers[T], notify func(object T, change Change),
) error {
	if err := informer.AddTypedIndexers(indexers); err != nil {
		return fmt.Errorf("index %s: %w", resource, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(watchErrorHandler(resource)); err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	registration, err := informer.AddTypedEventHandler(handler[T]{notify: notify, logger: klog.Background()})
	if err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	if into.indexers == nil {
		into.indexers = map[string]cache.TypedIndexer[T]{}
	}
	into.indexers[namespace] = informer.GetTypedIndexer()
	view.OwnWrites.Watch(resource, namespace, informer.GetStore())
	view.registrations = append(view.registrations, registration)
	return nil
}

// Get returns the object of that name; false if there is none.
func (c *Cache[T]) Get(name cache.ObjectName) (object T, exists bool) {
	indexer := c.of(name.Namespace)
	if indexer == nil {
		return object, false
	}
	stored, exists, err := indexer.GetByKey(name.String())
	if !exists || err != nil { // the error is for keys that can't be computed
		return object, false
	}
	object, exists = stored.(T)
	return object, exists
}

// ByIndex returns the objects of a namespace under a value of an index, which
// must exist.
func (c *Cache[T]) ByIndex(namespace, index, value string) []T {
	indexer := c.of(namespace)
	if indexer == nil {
		return nil
	}
	objects, err := indexer.ByTypedIndex(index, value)
	if err != nil {
		// Only an index that doesn't exist gives an error.
		panic(err)
	}
	return objects
}

// of returns the indexer that holds the objects of a namespace; nil if it isn't
// watched.
func (c *Cache[T]) of(namespace string) cache.TypedIndexer[T] {
	if indexer := c.indexers[namespace]; indexer != nil {
		return indexer
	}
	return c.indexers[metav1.NamespaceAll]
}
