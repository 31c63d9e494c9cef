// SPDX-License-Identifier: Apache-2.0

package kit

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
func SelectedList(selector labels.Selector) func(*metav1.ListOptions) {
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

// Object is a pointer to an object of the API, as an informer stores it.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}
