//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestAnOperatorOfOneNamespaceServesThatOneAlone runs config/operator-namespaced.yaml
// in a namespace, without the operator of all of them, which would do its work for
// it. It runs beside no other test: all have the same operator.
func TestAnOperatorOfOneNamespaceServesThatOneAlone(t *testing.T) {
	own, other := newNamespace(t), newNamespace(t)
	replicas := scaleOperator(t, 0)
	t.Cleanup(func() { scaleOperatorBack(t, replicas) })
	begun := time.Now()
	foreign := database{engine: anyEngine(), namespace: other, name: "foreign"}
	foreign.create(t)
	installIn(t, own)
	account := "system:serviceaccount:" + own + ":database-manager"
	expectNoRightsElsewhere(t, account, own)

	l := beginIn(t, own, anyEngine(), "orders", durable)
	l.app.write(t, "value")
	l.comesBack(t, coreResource("services"), l.stem())
	l.losesItsPod(t)
	l.delete(t, l.retained()...)
	removeFrom(t, own)

	if left, err := foreign.children(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("a database in another namespace was given %q (%v)", left, err)
	}
	if stored, err := foreign.get(t.Context()); err != nil || len(stored.Status.Conditions) > 0 {
		t.Errorf("a database in another namespace was given a status: %+v (%v)", stored.Status, err)
	}
	requests := requestsOf(t, account, begun)
	if len(requests) < 20 {
		t.Errorf("the audit log has only %d requests of the operator's", len(requests))
	}
	for _, entry := range requests {
		isElsewhere := entry.ObjectRef.Resource != "" && entry.ObjectRef.Namespace != own
		if isElsewhere || entry.LacksRight() {
			t.Errorf("the operator sent %s", entry)
		}
	}
	scaleOperatorBack(t, replicas)
	waitForOperators(t, replicas, nil)
	foreign.waitReady(t)
}

// namespacedResources is where the objects of operator-namespaced.yaml are, by
// kind. None of them is of the whole cluster but the namespace, which is there.
func namespacedResources() map[string]schema.GroupVersionResource {
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"ServiceAccount": coreResource("serviceaccounts"),
		"Role":           rbac.WithResource("roles"),
		"RoleBinding":    rbac.WithResource("rolebindings"),
		"Deployment":     appsv1.SchemeGroupVersion.WithResource("deployments"),
	}
}

// installIn installs the operator of one namespace in that one, as the manifest
// does in its own, and waits until it is available.
func installIn(t *testing.T, namespace string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "operator-namespaced.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte("namespace: "+operatorNamespace), []byte("namespace: "+namespace))
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read the manifest: %v", err)
		}
		resource, isKnown := namespacedResources()[object.GetKind()]
		switch {
		case object.GetKind() == "Namespace" || len(object.Object) == 0:
			continue
		case !isKnown || object.GetNamespace() != namespace:
			t.Fatalf("%s %s is of the namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
		}
		if _, err := env.dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			// Before the operator of all namespaces is back.
			removeFrom(t, namespace)
		}
	})
	eventually(t, patience, "the operator of one namespace", func(ctx context.Context) error {
		operator, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "database-manager", metav1.GetOptions{})
		if err == nil && operator.Status.AvailableReplicas != *operator.Spec.Replicas {
			err = fmt.Errorf("%d are available", operator.Status.AvailableReplicas)
		}
		return err
	})
}

// removeFrom takes the operator of one namespace away, and waits until it is gone.
// It also works once the test has ended.
func removeFrom(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	policy := metav1.DeletePropagationForeground
	if err := env.kube.AppsV1().Deployments(namespace).Delete(ctx, "database-manager", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("delete the operator of one namespace: %v", err)
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=database-manager"})
		if err == nil && len(pods.Items) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("the operator of one namespace stays: %v (%v)", podNames(pods), err)
			return
		case <-ticker.C:
		}
	}
}

func podNames(pods *corev1.PodList) []string {
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// expectNoRightsElsewhere asks the API server whether an account may read in the
// whole cluster, or in a namespace that isn't its own, what it may in its own.
func expectNoRightsElsewhere(t *testing.T, account, own string) {
	t.Helper()
	for namespace, isAllowed := range map[string]bool{own: true, operatorNamespace: false, "": false} {
		for _, resource := range []authorizationv1.ResourceAttributes{
			{Group: "coolops.cn", Resource: "databasemanagers"}, {Group: "apps", Resource: "statefulsets"}, {Resource: "secrets"}, {Resource: "pods"},
		} {
			resource.Namespace, resource.Verb = namespace, "list"
			review, err := env.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &resource},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("ask for a right: %v", err)
			}
			if review.Status.Allowed != isAllowed {
				t.Errorf("to list %s in %q is allowed: %t, want %t", resource.Resource, namespace, review.Status.Allowed, isAllowed)
			}
		}
	}
}
