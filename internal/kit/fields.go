// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// drops tells whether our POST set a field of an object that fields lack, or may
// lack: one that is a default is there without having been sent.
func drops(live metav1.Object, manager string, fields map[string]any) (bool, error) {
	lacksAny := false
	for _, entry := range live.GetManagedFields() {
		isOfPost := entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && entry.FieldsV1 != nil
		if !isOfPost {
			continue
		}
		var posted fieldpath.Set
		if err := posted.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return false, fmt.Errorf("read which fields are ours: %w", err)
		}
		posted.Leaves().Iterate(func(path fieldpath.Path) { lacksAny = lacksAny || !has(fields, path) })
	}
	return lacksAny, nil
}

// has tells whether there is something at a path.
func has(at any, path fieldpath.Path) bool {
	for _, element := range path {
		var exists bool
		if at, exists = child(at, element); !exists {
			return false
		}
	}
	return true
}

// child is what an element of a path leads to: a field, or an item of a list by its
// keys or its value. No list of ours has items by their number.
func child(at any, element fieldpath.PathElement) (any, bool) {
	if element.FieldName != nil {
		object, _ := at.(map[string]any) // nothing else has fields
		found, exists := object[*element.FieldName]
		return found, exists
	}
	items, _ := at.([]any) // nothing else has items
	for _, item := range items {
		if element.Value != nil && value.Equals(value.NewValueInterface(item), *element.Value) {
			return item, true
		}
		if element.Key != nil && hasKeys(item, *element.Key) {
			return item, true
		}
	}
	return nil, false
}

func hasKeys(item any, keys value.FieldList) bool {
	object, _ := item.(map[string]any) // nothing else has keys
	for _, key := range keys {
		if found, exists := object[key.Name]; !exists || !value.Equals(value.NewValueInterface(found), key.Value) {
			return false
		}
	}
	return true
}
