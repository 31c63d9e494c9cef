//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// grantRights installs what the manifests let the operator do, for one test.
func grantRights(t *testing.T) {
	t.Helper()
	for _, file := range []string{"cluster_role.yaml", "cluster_role_binding.yaml"} {
		objects, err := readManifests(filepath.Join(repository, "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			resource := map[string]string{"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}[object.GetKind()]
			client := env.dynamic.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource})
			if _, err := client.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
				t.Fatalf("apply %s: %v", file, err)
			}
			t.Cleanup(func() {
				if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Errorf("delete %s: %v", object.GetName(), err)
				}
			})
		}
	}
}

// TestFoosNeedNoMoreRightsThanTheManifestsGrant does, as the operator's service
// account, all that is done for a Foo: no administrator lends a hand.
func TestFoosNeedNoMoreRightsThanTheManifestsGrant(t *testing.T) {
	grantRights(t)
	operator := startOperator(t, func(request *http.Request) {
		request.Header.Set("Impersonate-User", "system:serviceaccount:database-manager-system:database-manager")
	})
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSyncedWithin(t, collection, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", foo)
	strip := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}},"spec":{"replicas":1}}`)
	if _, err := env.kube.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.MergePatchType, strip, metav1.PatchOptions{}); err != nil {
		t.Fatalf("strip the label: %v", err)
	}
	awaitReplicas(t, namespace, "web", 5)
	changeFoo(t, namespace, "example-foo", `{"deploymentName":"other"}`)
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "other", foo)
	awaitGone(t, namespace, before)
	awaitFooEvents(t, foo, "Normal Synced")
	operator.requests.awaitQuiet(t, time.Second)
}
