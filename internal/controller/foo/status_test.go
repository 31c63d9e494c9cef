// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/fake"
)

// server plays the API server's part in writing a status: it answers an apply
// with an error, or not, and a patch by storing what its schema knows.
type server struct {
	foo           *v1alpha1.Foo
	answer        error
	hasConditions bool
	patches       []types.PatchType
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, isPatch := action.(clienttesting.PatchAction)
	if !isPatch {
		return false, nil, nil
	}
	s.patches = append(s.patches, patch.GetPatchType())
	if patch.GetPatchType() == types.ApplyPatchType && s.answer != nil {
		return true, nil, s.answer
	}
	s.foo = s.foo.DeepCopy()
	s.foo.Status = v1alpha1.FooStatus{AvailableReplicas: 5}
	if s.hasConditions {
		s.foo.Status.Conditions = []metav1.Condition{synced(3)}
	}
	return true, s.foo, nil
}

// newTeller returns a controller that writes to the server, and the events that
// it sends.
func newTeller(server *server) (*Controller, chan string) {
	client := fake.NewClientset()
	client.PrependReactor("patch", "foos", server.react)
	recorder := events.NewFakeRecorder(10)
	return &Controller{config: Config{Foos: client, Recorder: recorder}, caches: caches{View: kit.NewView()}, unstored: newUnstored()}, recorder.Events
}

// tellAgain reports that all is well, as a sync does, once for each time.
func tellAgain(ctx context.Context, t *testing.T, c *Controller, server *server, times int) error {
	t.Helper()
	var failures []error
	for range times {
		seen := snapshot{foo: server.foo, status: c.unstored.recall(server.foo), deployment: newDeployment(t, server.foo, available(5))}
		failures = append(failures, c.tell(ctx, cache.MetaObjectToName(server.foo), seen, outcome{isDone: true}, noon))
	}
	return errors.Join(failures...)
}

func TestAStatusIsWrittenAndToldOfOnce(t *testing.T) {
	undeclared := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "field not declared in schema"}}
	gone := apierrors.NewNotFound(fooResource(), "example-foo")
	refused := apierrors.NewForbidden(fooResource(), "example-foo", errors.New("no"))
	for sentence, row := range map[string]struct {
		server  server
		patches []types.PatchType
		events  int
		fails   bool
	}{
		"where the schema has conditions":                {server{hasConditions: true}, []types.PatchType{types.ApplyPatchType}, 1, false},
		"where the schema has none":                      {server{answer: undeclared}, []types.PatchType{types.ApplyPatchType, types.MergePatchType}, 1, false},
		"where the server stumbles for another reason":   {server{answer: undeclared, hasConditions: true}, []types.PatchType{types.ApplyPatchType, types.MergePatchType}, 1, false},
		"but not of a Foo that is gone":                  {server{answer: gone}, []types.PatchType{types.ApplyPatchType, types.ApplyPatchType}, 0, false},
		"but nothing is told of what couldn't be stored": {server{answer: refused}, []types.PatchType{types.ApplyPatchType, types.ApplyPatchType}, 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := &row.server
			server.foo = newFoo()
			controller, told := newTeller(server)
			err := tellAgain(t.Context(), t, controller, server, 2)
			if (err != nil) != row.fails {
				t.Errorf("got the error %v", err)
			}
			if !slices.Equal(server.patches, row.patches) {
				t.Errorf("the patches are %v, want %v", server.patches, row.patches)
			}
			if len(told) != row.events {
				t.Errorf("got %d events, want %d", len(told), row.events)
			}
			if len(told) > 0 {
				if event := <-told; event != "Normal Synced "+messageSynced {
					t.Errorf("the event is %q", event)
				}
			}
		})
	}
}

func TestWhatCouldNotBeStoredIsForgottenOnceItIsThere(t *testing.T) {
	u, foo := newUnstored(), newFoo()
	u.remember(foo.UID, []metav1.Condition{synced(3)})
	if got := u.recall(foo).Conditions; len(got) != 1 {
		t.Errorf("recalled %v", got)
	}
	if got := u.recall(newFoo(func(foo *v1alpha1.Foo) { foo.UID = "another" })).Conditions; len(got) != 0 {
		t.Errorf("another Foo is given %v", got)
	}
	u.recall(newFoo(func(foo *v1alpha1.Foo) { foo.Status.Conditions = []metav1.Condition{synced(4)} }))
	if got := u.recall(foo).Conditions; len(got) != 0 {
		t.Errorf("it is still there after a stored one was seen: %v", got)
	}
}

func TestALongMessageIsCutToWhatAnEventTakes(t *testing.T) {
	if got := shorten(strings.Repeat("ä", 600)); len(got) > 1024 || !strings.HasSuffix(got, "ä …") {
		t.Errorf("got %d bytes, ending in %q", len(got), got[len(got)-8:])
	}
	if got := shorten("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}
