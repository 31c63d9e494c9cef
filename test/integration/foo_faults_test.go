//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

func isStatusWrite(line string) bool {
	return strings.HasPrefix(line, "PATCH") && strings.Contains(line, "/status?")
}

// fault stands between the operator and the API server, and spoils the first
// requests of a kind.
type fault struct {
	next http.RoundTripper
	// method and path, a part of it, say which requests.
	method, path string
	// code is what they are answered with, without being sent; 0 means that they
	// are sent, and their answer is lost.
	code int
	left *atomic.Int32
}

func (f fault) RoundTrip(request *http.Request) (*http.Response, error) {
	isMeant := request.Method == f.method && strings.Contains(request.URL.Path, f.path)
	if !isMeant || f.left.Add(-1) < 0 {
		return f.next.RoundTrip(request)
	}
	if f.code != 0 {
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"spoiled"}`, f.code)
		return &http.Response{
			StatusCode: f.code, Status: http.StatusText(f.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: request,
		}, nil
	}
	response, err := f.next.RoundTrip(request)
	if err == nil {
		err = errors.Join(errors.New("the answer is lost"), response.Body.Close())
	}
	return nil, err
}

// TestAWriteThatFailsIsTriedAgain spoils every kind of write, twice each: by a
// conflict, by an error, and by losing the answer to what was done.
func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	for what, row := range map[string]struct{ method, path string }{
		"the creation of the Deployment": {http.MethodPost, "/deployments"},
		"the change of the Deployment":   {http.MethodPatch, "/deployments/web"},
		"the deletion of the old one":    {http.MethodDelete, "/deployments/web"},
		"the status":                     {http.MethodPatch, "/foos/example-foo/status"},
		"the look before":                {http.MethodGet, "/foos/example-foo"},
	} {
		for how, code := range map[string]int{"conflicts": http.StatusConflict, "fails": http.StatusInternalServerError, "loses its answer": 0} {
			t.Run(what+" "+how, func(t *testing.T) {
				left := &atomic.Int32{}
				left.Store(2)
				startOperatorThrough(t, func(next http.RoundTripper) http.RoundTripper {
					return fault{next: next, method: row.method, path: row.path, code: code, left: left}
				})
				namespace := newNamespace(t)
				newFoo(t, namespace, "example-foo", "web")
				foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
				before := deploymentOf(t, namespace, "web", foo)
				changeFoo(t, namespace, "example-foo", `{"replicas":2}`)
				awaitReplicas(t, namespace, "web", 2)
				changeFoo(t, namespace, "example-foo", `{"deploymentName":"other"}`)
				awaitReplicas(t, namespace, "other", 2)
				awaitGone(t, namespace, before)
				foo = awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
				if left.Load() == 2 {
					t.Error("no request was spoiled")
				}
				if row.path == "/foos/example-foo/status" && code == 0 {
					// It is there when it is looked at again, so there is nothing to tell:
					// an event may get lost, and comes never twice.
					awaitFooEvents(t, foo)
					return
				}
				awaitFooEvents(t, foo, "Normal Synced")
			})
		}
	}
}

func awaitReplicas(t *testing.T, namespace, name string, want int32) {
	t.Helper()
	await(t, fmt.Sprintf("%d pods of %s", want, name), func(ctx context.Context) error {
		deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && *deployment.Spec.Replicas != want {
			err = fmt.Errorf("there are %d", *deployment.Spec.Replicas)
		}
		return err
	})
}

// TestAStatusIsNeverWrittenToAnotherFooOfTheSameName replaces the Foo at the
// moment at which its status is about to be written: the API server refuses it
// for the sake of the UID, and the new Foo is then looked at for itself.
func TestAStatusIsNeverWrittenToAnotherFooOfTheSameName(t *testing.T) {
	namespace := newNamespace(t)
	var replaced *samplev1alpha1.Foo
	replace := sync.OnceFunc(func() {
		if err := foosIn(namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the Foo: %v", err)
		}
		replaced = newFoo(t, namespace, "example-foo", "other")
	})
	operator := startOperator(t, func(request *http.Request) {
		if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/namespaces/"+namespace+"/foos/example-foo/status") {
			replace()
		}
	})
	first := newFoo(t, namespace, "example-foo", "web")
	await(t, "the second Foo is synced", func(ctx context.Context) error {
		foo, err := foosIn(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
		if err == nil && (foo.UID == first.UID || len(foo.Status.Conditions) == 0) {
			err = errors.New("not yet")
		}
		return err
	})
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	if foo.UID != replaced.UID {
		t.Errorf("the UID is %s, want %s", foo.UID, replaced.UID)
	}
	operator.requests.awaitQuiet(t, time.Second)
	awaitFooEvents(t, foo, "Normal Synced")
	awaitFooEvents(t, first)
}

// TestAFooThatIsDeletedAndCreatedAgainIsGivenADeploymentOfItsOwn waits for the
// garbage collector, which takes the Deployment of the first one away.
func TestAFooThatIsDeletedAndCreatedAgainIsGivenADeploymentOfItsOwn(t *testing.T) {
	for sentence, isDown := range map[string]bool{"while the operator runs": false, "while the operator is down": true} {
		t.Run(sentence, func(t *testing.T) {
			operator := startOperator(t)
			namespace := newNamespace(t)
			newFoo(t, namespace, "example-foo", "web")
			first := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			before := deploymentOf(t, namespace, "web", first)
			if isDown {
				operator.stop()
			}
			if err := foosIn(namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the Foo: %v", err)
			}
			newFoo(t, namespace, "example-foo", "web")
			if isDown {
				startOperator(t)
			}
			awaitGone(t, namespace, before)
			second := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			after := deploymentOf(t, namespace, "web", second)
			if second.UID == first.UID || after.UID == before.UID {
				t.Errorf("Foo %s has the Deployment %s; before it were %s and %s", second.UID, after.UID, first.UID, before.UID)
			}
		})
	}
}

// TestADeletedFoosDeploymentIsCollectedAndNotMadeAgain also where the deletion is
// in the foreground, in which the Foo is still there while its Deployment goes.
func TestADeletedFoosDeploymentIsCollectedAndNotMadeAgain(t *testing.T) {
	operator := startOperator(t)
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(how), func(t *testing.T) {
			namespace := newNamespace(t)
			newFoo(t, namespace, "example-foo", "web")
			foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			before := deploymentOf(t, namespace, "web", foo)
			if err := foosIn(namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
				t.Fatalf("delete the Foo: %v", err)
			}
			awaitGone(t, namespace, before)
			operator.requests.awaitQuiet(t, time.Second)
			if made := childNames(children(t, namespace)); len(made) > 0 {
				t.Errorf("made again: %v", made)
			}
		})
	}
}

// TestForeignFieldsOfADeploymentStay when a field of ours is put back.
func TestForeignFieldsOfADeploymentStay(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	added := `{"metadata":{"labels":{"team":"shop"},"annotations":{"note":"kept"}},"spec":{"replicas":1,"revisionHistoryLimit":3,` +
		`"template":{"spec":{"nodeSelector":{"disk":"ssd"},"containers":[{"name":"sidecar","image":"pause"}]}}}}`
	deployments := env.kube.AppsV1().Deployments(namespace)
	if _, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(added), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		t.Fatalf("add to the Deployment: %v", err)
	}
	awaitReplicas(t, namespace, "web", 5)
	deployment, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if deployment.Labels["team"] != "shop" || deployment.Annotations["note"] != "kept" || *deployment.Spec.RevisionHistoryLimit != 3 ||
		pod.NodeSelector["disk"] != "ssd" || len(pod.Containers) != 2 {
		t.Errorf("what others added is gone: %+v", deployment)
	}
}
