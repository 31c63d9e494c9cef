// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
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

const (
	// sharedTexts is how many texts a Slimmer knows, of at least sharedLength bytes.
	sharedTexts  = 256
	sharedLength = 256
)

// Slimmer makes cached objects small.
type Slimmer struct{ texts *lru.Cache }

// NewSlimmer returns one for the caches of a process.
func NewSlimmer() *Slimmer { return &Slimmer{lru.New(sharedTexts)} }

// Slim is an informer's transform. The record of who owns which field is the greater
// part of many objects, and no cached copy of it is used. Of long texts that many
// ConfigMaps have, such as a script, there is one copy.
func (s *Slimmer) Slim(object any) (any, error) {
	// What else there is is a tombstone; what that holds was transformed when it
	// was stored.
	if accessor, isObject := object.(metav1.Object); isObject {
		logReceived(accessor)
		accessor.SetManagedFields(nil)
	}
	if config, isConfigMap := object.(*corev1.ConfigMap); isConfigMap {
		for key, text := range config.Data {
			config.Data[key] = s.share(text)
		}
	}
	return object, nil
}

// share returns the copy of a text that others have, too.
func (s *Slimmer) share(text string) string {
	if len(text) < sharedLength {
		return text
	}
	if known, isKnown := s.texts.Get(text); isKnown {
		if shared, isText := known.(string); isText {
			return shared
		}
	}
	s.texts.Add(text, text)
	return text
}

// logReceived logs what a list or a watch brought. A transform is where it
// first comes by, on its way into the informer's queue.
func logReceived(object metav1.Object) {
	if !klog.V(levelWatch).Enabled() {
		return
	}
	klog.Background().V(levelWatch).Info("Received", "type", fmt.Sprintf("%T", object),
		"object", cache.MetaObjectToName(object), "resourceVersion", object.GetResourceVersion())
}

// watchErrorHandler logs why an informer's list or watch ended; client-go tries
// again by itself, after a pause that grows to half a minute. A resource that
// isn't there is the one cause that a user has to remove.
func watchErrorHandler(resource schema.GroupResource) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "The API server has no such resource; install its CustomResourceDefinition. Trying again", "resource", resource.String())
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// Object is a pointer to an object of the API, as an informer stores it.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}
