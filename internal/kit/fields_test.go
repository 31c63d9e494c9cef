// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOnlyAFieldThatIsDroppedHasToBeTakenOver compares what our POST is booked with,
// as the API server writes it, with what is to be set.
func TestOnlyAFieldThatIsDroppedHasToBeTakenOver(t *testing.T) {
	const posted = `{"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:x":{}},"f:finalizers":{"v:\"one\"":{}}},` +
		`"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}}`
	all := func(change func(fields map[string]any)) map[string]any {
		fields := map[string]any{
			"data":     map[string]any{"a": "1", "b": "2"},
			"metadata": map[string]any{"labels": map[string]any{"x": "y"}, "finalizers": []any{"other", "one"}},
			"spec":     map[string]any{"ports": []any{map[string]any{"name": "db", "port": int64(80), "protocol": "TCP"}}},
		}
		change(fields)
		return fields
	}
	for sentence, row := range map[string]struct {
		fields  map[string]any
		manager string
		want    bool
	}{
		"all are set":            {all(func(map[string]any) {}), "ours", false},
		"one has a value more":   {all(func(f map[string]any) { f["data"] = map[string]any{"a": "2", "b": "2", "c": "3"} }), "ours", false},
		"one isn't set any more": {all(func(f map[string]any) { f["data"] = map[string]any{"a": "1"} }), "ours", true},
		"none is":                {map[string]any{}, "ours", true},
		"an item of a list isn't": {all(func(f map[string]any) {
			f["metadata"] = map[string]any{"labels": map[string]any{"x": "y"}, "finalizers": []any{"other"}}
		}), "ours", true},
		"an item has another key": {all(func(f map[string]any) {
			f["spec"] = map[string]any{"ports": []any{map[string]any{"name": "db", "port": int64(81), "protocol": "TCP"}}}
		}), "ours", true},
		"a key is a default": {all(func(f map[string]any) {
			f["spec"] = map[string]any{"ports": []any{map[string]any{"name": "db", "port": int64(80)}}}
		}), "ours", true},
		"it is somebody else's": {map[string]any{}, "theirs", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: row.manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(posted)},
				{Manager: "ours", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:z":{}}}`)},
				{Manager: "ours", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:z":{}}}`)},
			}}}
			if got, err := drops(live, "ours", row.fields); err != nil || got != row.want {
				t.Errorf("got %t, %v, want %t", got, err, row.want)
			}
		})
	}
}
