// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// oneObject answers as an API server would that holds one ConfigMap, or none,
// and notes what it is asked.
type oneObject struct {
	stored *corev1.ConfigMap
	asked  []string
}

func (o *oneObject) Create(_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	o.asked = append(o.asked, "create")
	if o.stored != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("configmaps"), object.Name)
	}
	o.stored = object
	return object, nil
}

func (o *oneObject) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	o.asked = append(o.asked, "get")
	if o.stored == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return o.stored, nil
}

func (o *oneObject) Patch(_ context.Context, _ string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.ConfigMap, error) {
	o.asked = append(o.asked, string(kind)+" "+string(data))
	return o.stored, nil
}

func (o *oneObject) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	asked := "delete " + string(*options.Preconditions.UID)
	if version := options.Preconditions.ResourceVersion; version != nil {
		asked += " at " + *version
	}
	o.asked = append(o.asked, asked)
	if o.stored == nil {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	if o.stored.UID != *options.Preconditions.UID {
		return apierrors.NewConflict(corev1.Resource("configmaps"), name, errors.New("another UID"))
	}
	return nil
}

var errForeign = errors.New("it isn't ours")

// TestWhatIsInTheWayOfAWrite has a write meet an object that the cache on which
// it was decided didn't show.
func TestWhatIsInTheWayOfAWrite(t *testing.T) {
	const applied = `application/apply-patch+yaml {"data":{"key":"value"},"metadata":{"name":"db","uid":"ours"}}`
	ours := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "ours"}}
	fields := map[string]any{"metadata": map[string]any{"name": "db"}, "data": map[string]any{"key": "value"}}
	create := func(w *Writer[*corev1.ConfigMap], existing Existing) error {
		_, err := w.Create(t.Context(), "db", fields, existing)
		return err
	}
	apply := func(w *Writer[*corev1.ConfigMap], existing Existing) error {
		_, err := w.Apply(t.Context(), "db", Expected{UID: "ours"}, existing)
		return err
	}
	remove := func(w *Writer[*corev1.ConfigMap], _ Existing) error { return w.Delete(t.Context(), "db", "ours", "") }
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "another"}}
	for sentence, row := range map[string]struct {
		stored *corev1.ConfigMap
		do     func(*Writer[*corev1.ConfigMap], Existing) error
		asked  []string
		err    func(error) bool
	}{
		"nothing: it is made": {nil, create, []string{"create"}, isNone},
		"one of ours, made a moment ago: it is as good as new": {ours, create, []string{"create", "get", applied}, isNone},
		"a foreign one: it is left alone":                      {foreign, create, []string{"create", "get"}, is(errForeign)},
		"the one that is meant":                                {ours, apply, []string{"get", applied}, isNone},
		"another one of its name: it isn't written":            {foreign, apply, []string{"get"}, is(ErrChanged)},
		"none any more: it isn't made anew":                    {nil, apply, []string{"get"}, apierrors.IsNotFound},
		"one to be deleted that is gone":                       {nil, remove, []string{"delete ours"}, isNone},
		"another one than that to be deleted":                  {foreign, remove, []string{"delete ours"}, apierrors.IsConflict},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := &oneObject{stored: row.stored}
			writer := &Writer[*corev1.ConfigMap]{Client: client, New: func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, Manager: "test"}
			err := row.do(writer, func(live metav1.Object) (map[string]any, error) {
				if live.GetUID() != "ours" {
					return nil, errForeign
				}
				return fields, nil
			})
			if !row.err(err) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(client.asked, row.asked) {
				t.Errorf("asked %q, want %q", client.asked, row.asked)
			}
		})
	}
}

// TestWhatHoldsDataIsWrittenAsItWasRead: what is applied was taken from it, or it was
// decided by it.
func TestWhatHoldsDataIsWrittenAsItWasRead(t *testing.T) {
	const applied = `application/apply-patch+yaml {"metadata":{"name":"db","resourceVersion":"5","uid":"ours"}}`
	fields := map[string]any{"metadata": map[string]any{"name": "db"}}
	apply := func(expected Expected) func(*Writer[*corev1.ConfigMap]) error {
		return func(w *Writer[*corev1.ConfigMap]) error {
			_, err := w.Apply(t.Context(), "db", expected, func(metav1.Object) (map[string]any, error) { return fields, nil })
			return err
		}
	}
	for sentence, row := range map[string]struct {
		do    func(*Writer[*corev1.ConfigMap]) error
		asked []string
		err   func(error) bool
	}{
		"it is pinned to the version that it was judged by": {apply(Expected{UID: "ours"}), []string{"get", applied}, isNone},
		"that is the version of the decision":               {apply(Expected{UID: "ours", Version: "5"}), []string{"get", applied}, isNone},
		"another one than that of the decision isn't":       {apply(Expected{UID: "ours", Version: "4"}), []string{"get"}, is(ErrChanged)},
		"it is deleted at that version": {
			func(w *Writer[*corev1.ConfigMap]) error { return w.Delete(t.Context(), "db", "ours", "5") }, []string{"delete ours at 5"}, isNone,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := &oneObject{stored: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "ours", ResourceVersion: "5"}}}
			writer := &Writer[*corev1.ConfigMap]{Client: client, New: func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, Manager: "test", IsPinned: true}
			if err := row.do(writer); !row.err(err) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(client.asked, row.asked) {
				t.Errorf("asked %q, want %q", client.asked, row.asked)
			}
		})
	}
}

func isNone(err error) bool { return err == nil }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}
