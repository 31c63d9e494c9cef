// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// Client is the part of a generated typed client that the writer needs.
type Client[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// ErrChanged says that an object isn't, any more, what a decision rested on. It
// is decided anew.
var ErrChanged = errors.New("the object has changed since it was read")

// Existing decides what to do about an object that exists, as read a moment
// ago: it returns the fields to apply to it, or an error if it isn't ours.
type Existing func(live metav1.Object) (map[string]any, error)

// Expected is the object that a decision rests on.
type Expected struct {
	// UID is the object's; empty if any will do.
	UID types.UID
	// Version is its resourceVersion; empty if any will do.
	Version string
}

func (e Expected) check(live metav1.Object) error {
	switch {
	case e.UID != "" && live.GetUID() != e.UID:
		return fmt.Errorf("UID is %s, expected %s: %w", live.GetUID(), e.UID, ErrChanged)
	case e.Version != "" && live.GetResourceVersion() != e.Version:
		return fmt.Errorf("resourceVersion is %s, expected %s: %w", live.GetResourceVersion(), e.Version, ErrChanged)
	}
	return nil
}

// Writer writes objects of one type in one namespace. The fields that it is
// given are those that we own, all of them: what an earlier call set and a
// later one doesn't is removed, and what others set is left alone.
type Writer[T Object] struct {
	// Client reaches the objects.
	Client Client[T]
	// New returns an empty object.
	New func() T
	// Manager is the name under which we own fields.
	Manager string
	// IsPinned is true for objects that an apply must find exactly as they were
	// read, because what it applies was taken from them.
	IsPinned bool
	// Excluded are the paths of fields that the API doesn't allow beside ours,
	// and fills in by itself once somebody else's value asks for them.
	Excluded [][]string
}

// Create makes an object. If one of its name exists, it is read once and
// existing decides.
func (w *Writer[T]) Create(ctx context.Context, name string, fields map[string]any, existing Existing) (metav1.Object, error) {
	object := w.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	created, err := w.Client.Create(ctx, object, metav1.CreateOptions{FieldManager: w.Manager})
	if apierrors.IsAlreadyExists(err) {
		return w.Apply(ctx, name, Expected{}, existing)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return created, nil
}

// Apply reads an object, lets existing decide what it should be, and applies
// that to this very object: it fails with ErrChanged if it isn't the expected
// one, and it makes no object anew that has just been deleted.
func (w *Writer[T]) Apply(ctx context.Context, name string, expected Expected, existing Existing) (metav1.Object, error) {
	live, err := w.Client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if err := expected.check(live); err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	fields, err := existing(live)
	if err != nil {
		return nil, err
	}
	if live, err = w.takeOver(ctx, name, live, fields); err != nil {
		return nil, err
	}
	pinned, err := w.pin(fields, live)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	patch, err := json.Marshal(pinned)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	applied, err := w.Client.Patch(ctx, name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: w.Manager, Force: new(true)})
	if apierrors.IsInvalid(err) {
		return w.replace(ctx, name, pinned, err)
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	return applied, nil
}

// Delete removes the object that is meant, and no other of its name. A version
// makes it stricter: the object as it was read.
func (w *Writer[T]) Delete(ctx context.Context, name string, uid types.UID, version string) error {
	preconditions := &metav1.Preconditions{UID: &uid}
	if version != "" {
		preconditions.ResourceVersion = &version
	}
	err := w.Client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: preconditions})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// Get reads an object.
func (w *Writer[T]) Get(ctx context.Context, name string) (metav1.Object, error) {
	live, err := w.Client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return live, nil
}

// pin returns a copy of the fields that fits no other object than live.
func (w *Writer[T]) pin(fields map[string]any, live T) (map[string]any, error) {
	fields = runtime.DeepCopyJSON(fields)
	metadata, exists := fields["metadata"].(map[string]any)
	if !exists {
		return nil, errors.New("an intent without metadata")
	}
	metadata["uid"] = string(live.GetUID())
	if w.IsPinned {
		metadata["resourceVersion"] = live.GetResourceVersion()
	}
	return fields, nil
}

// takeOver makes the fields that our POST set ours to remove, once one of them is not
// to be set any more. The API server books them under the operation Update, where a
// later apply, which is another operation, adds to them but never takes any away.
func (w *Writer[T]) takeOver(ctx context.Context, name string, live T, fields map[string]any) (T, error) {
	isNeeded, err := drops(live, w.Manager, fields)
	if err != nil {
		return live, fmt.Errorf("take over %s: %w", name, err)
	}
	if !isNeeded {
		return live, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(w.Manager), w.Manager)
	if err != nil {
		return live, fmt.Errorf("take over %s: %w", name, err)
	}
	if patch == nil {
		return live, nil
	}
	taken, err := w.Client.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: w.Manager})
	if err != nil {
		return live, fmt.Errorf("take over %s: %w", name, err)
	}
	return taken, nil
}

// replace sets the fields by a patch that replaces lists as a whole and removes
// what is excluded. An apply does neither: it merges lists by key, so that a
// Service whose port somebody changed ends up with theirs and ours, of the same
// name, which is invalid; and it leaves alone what somebody else's value has
// brought with it.
func (w *Writer[T]) replace(ctx context.Context, name string, fields map[string]any, invalid error) (metav1.Object, error) {
	for _, path := range w.Excluded {
		if err := unstructured.SetNestedField(fields, nil, path...); err != nil {
			return nil, fmt.Errorf("apply %s: %w", name, err)
		}
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	replaced, err := w.Client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: w.Manager})
	if err != nil {
		// The first answer is about what we wanted, the second about how.
		return nil, fmt.Errorf("apply %s: %w", name, invalid)
	}
	return replaced, nil
}
