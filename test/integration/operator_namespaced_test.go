//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"coolops.cn/database-manager/internal/app"
)

// rbacResources is where the objects of operator-namespaced.yaml are that grant
// something, by kind.
func rbacResources() map[string]schema.GroupVersionResource {
	group := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"},
		"Role":           group.WithResource("roles"),
		"RoleBinding":    group.WithResource("rolebindings"),
	}
}

// TestAnOperatorOfOneNamespaceNeedsRolesOnly runs it with the rights of
// operator-namespaced.yaml, and nothing else, beside a namespace that isn't its own.
func TestAnOperatorOfOneNamespaceNeedsRolesOnly(t *testing.T) {
	own, other := newNamespace(t), newNamespace(t)
	grantNamespaced(t, own)
	newDatabase(t, other, "foreign", "foreign-db")
	newDatabase(t, own, "orders", "orders-db", durable)

	refused := startNamespaced(t, own)
	await(t, "a database in the operator's own namespace", func(ctx context.Context) error {
		_, err := env.kube.AppsV1().StatefulSets(own).Get(ctx, "orders-db", metav1.GetOptions{})
		return err
	})
	if _, err := env.kube.AppsV1().Deployments(other).Get(t.Context(), "foreign-db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other namespace's database: %v, want none of its children", err)
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	for _, line := range refused.lines {
		t.Errorf("the operator was refused %s", line)
	}
}

// grantNamespaced gives a service account of the namespace the rights that
// operator-namespaced.yaml gives.
func grantNamespaced(t *testing.T, namespace string) {
	t.Helper()
	manifests, err := readManifests(filepath.Join(repository, "config", "operator-namespaced.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	granted := 0
	for _, object := range manifests {
		if object.GetNamespace() == "" && object.GetKind() != "Namespace" {
			t.Errorf("%s %s has no namespace", object.GetKind(), object.GetName())
		}
		resource, isGrant := rbacResources()[object.GetKind()]
		if !isGrant {
			continue
		}
		object.SetNamespace(namespace)
		moveSubjects(object, namespace)
		if _, err := env.dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		granted++
	}
	if granted != 5 {
		t.Fatalf("%d objects grant something, want a service account, two roles and two bindings", granted)
	}
}

func moveSubjects(object *unstructured.Unstructured, namespace string) {
	subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	for _, subject := range subjects {
		subject.(map[string]any)["namespace"] = namespace //nolint:errcheck // a subject is an object: the API server has its schema
	}
	if len(subjects) > 0 {
		object.Object["subjects"] = subjects
	}
}

// startNamespaced runs the operator as the namespace's service account, with a
// lease, and returns the log of what the API server refused.
func startNamespaced(t *testing.T, namespace string) *requestLog {
	t.Helper()
	refused := &requestLog{arrived: make(chan struct{}, 1)}
	config := rest.CopyConfig(env.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":database-manager",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusals{next, refused} })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{
			Cluster: config, Namespaces: []string{namespace}, Workers: 4, MetricsAddress: "0", HealthAddress: "0",
			LeaseNamespace: namespace, Identity: namespace,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return refused
}

// refusals notes the requests that are forbidden.
type refusals struct {
	next http.RoundTripper
	log  *requestLog
}

func (r refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		r.log.add(request)
	}
	return response, err
}
