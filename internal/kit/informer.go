// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// ConsistentList makes an informer's first list a consistent one. Where the
// server refuses to stream it, client-go lists at resourceVersion "0", which
// may be answered from a cache that is behind: then a restarted operator would
// see a past in which what it made doesn't exist yet.
func ConsistentList(options *metav1.ListOptions) {
	isStreamed := options.SendInitialEvents != nil
	if options.ResourceVersion == "0" && !isStreamed {
		options.ResourceVersion = ""
		options.ResourceVersionMatch = ""
	}
}

// SelectedList is ConsistentList for objects with certain labels: others cost
// neither memory nor traffic.
func SelectedList(selector labels.Set) func(*metav1.ListOptions) {
	selected := selector.String()
	return func(options *metav1.ListOptions) {
		ConsistentList(options)
		options.LabelSelector = selected
	}
}

// DropManagedFields is an informer's transform. The record of who owns which
// field is the greater part of many objects, and no cached copy of it is used.
func DropManagedFields(object any) (any, error) {
	// What else there is is a tombstone; what that holds was transformed when it
	// was stored.
	if accessor, isObject := object.(metav1.Object); isObject {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// OnChange calls notify with the object whenever one appears, changes or goes.
// An object that went away unseen is given as it was last known; one that was
// never known isn't given at all, since nothing is left to find its owner by:
// whatever relies on it finds it missing when it is synced. A change from one
// object to another of the same name is given as both.
func OnChange[T Object](informer cache.TypedSharedIndexInformer[T], notify func(object T, isDeleted bool)) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc: func(object T) { notify(object, false) },
		UpdateFunc: func(old, object T) {
			if old.GetUID() != object.GetUID() {
				notify(old, true)
			}
			notify(object, false)
		},
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			var none T
			if deleted.OptionalObj != none {
				notify(deleted.OptionalObj, true)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", *new(T), err)
	}
	return registration, nil
}

// WaitForHandlers waits until every handler has been given the first list.
func WaitForHandlers(ctx context.Context, registrations ...cache.ResourceEventHandlerRegistration) error {
	checkers := make([]cache.DoneChecker, 0, len(registrations))
	for _, registration := range registrations {
		checkers = append(checkers, registration.HasSyncedChecker())
	}
	if !cache.WaitFor(ctx, "", checkers...) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	return nil
}

// Object is a pointer to an object of the API, as an informer stores it.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}
