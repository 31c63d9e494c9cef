//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestObjectsThatAnOlderSchemaLetInStayUsable stores an object under a schema
// without rules, and then brings the rules in: what is wrong with it can be
// corrected, and the rest changed, but nothing made worse.
func TestObjectsThatAnOlderSchemaLetInStayUsable(t *testing.T) {
	const group = "older.coolops.cn"
	lax := copiedCRD(t, group)
	removeRules(lax.Object)
	client := installCopy(t, lax)
	bad := copiedDatabase(t, group, `{deploymentName: Bad_Name, dbtype: redis, version: latest}`)
	createEventually(t, client, bad)

	if err := env.installCRD(t.Context(), copiedCRD(t, group)); err != nil {
		t.Fatal(err)
	}
	other := bad.DeepCopy()
	other.SetName("invoices")
	eventually(t, "the rules are in force", func(ctx context.Context) bool {
		_, err := client.Create(ctx, other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})

	if err := patch(t, client, `{"spec": {"image": "redis:8.0"}}`); err != nil {
		t.Errorf("another field can't be changed: %v", err)
	}
	if err := patch(t, client, `{"status": {"observedGeneration": 2}}`, "status"); err != nil {
		t.Errorf("the status can't be written: %v", err)
	}
	if err := patch(t, client, `{"spec": {"version": "8.0"}}`); err != nil {
		t.Errorf("a bad value can't be corrected: %v", err)
	}
	if err := patch(t, client, `{"spec": {"version": "newest"}}`); !apierrors.IsInvalid(err) {
		t.Errorf("a new bad value: got %v, want a refusal", err)
	}
}

// copiedCRD is our CRD under another group, and without its short name.
func copiedCRD(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	crds, err := readManifests(filepath.Join(repository, "config", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	index := slices.IndexFunc(crds, func(crd *unstructured.Unstructured) bool {
		return strings.HasSuffix(crd.GetName(), "."+v1alpha1.GroupName)
	})
	if index < 0 {
		t.Fatalf("no CRD of the group %s", v1alpha1.GroupName)
	}
	crd := crds[index]
	crd.SetName("databasemanagers." + group)
	if err := unstructured.SetNestedField(crd.Object, group, "spec", "group"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(crd.Object, "spec", "names", "shortNames")
	return crd
}

// installCopy installs a copy of our CRD for one test, and returns a client of
// its resources in a namespace of the test's own.
func installCopy(t *testing.T, crd *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	t.Cleanup(func() {
		err := env.dynamic.Resource(crdResource).Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the copy of the CRD: %v", err)
		}
	})
	if err := env.installCRD(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	group, _ := strings.CutPrefix(crd.GetName(), "databasemanagers.")
	resource := schema.GroupVersionResource{Group: group, Version: groupVersion.Version, Resource: "databasemanagers"}
	return env.dynamic.Resource(resource).Namespace(newNamespace(t))
}

func copiedDatabase(t *testing.T, group, spec string) *unstructured.Unstructured {
	t.Helper()
	object := database(t, "orders", spec)
	object.SetAPIVersion(group + "/" + groupVersion.Version)
	return object
}

// createEventually creates an object of a kind that was installed a moment ago.
func createEventually(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) {
	t.Helper()
	eventually(t, "the new kind is served", func(ctx context.Context) bool {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("create %s: %v", object.GetName(), err)
		}
		return err == nil
	})
}

func patch(t *testing.T, client dynamic.ResourceInterface, body string, subresources ...string) error {
	t.Helper()
	_, err := client.Patch(t.Context(), "orders", types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	return err
}

// eventually waits until a condition holds, for 30 s at most.
func eventually(t *testing.T, sentence string, holds func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), nil
	})
	if err != nil {
		t.Fatalf("wait until %s: %v", sentence, err)
	}
}

// removeRules takes every CEL rule out of a schema.
func removeRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "x-kubernetes-validations")
		for child := range maps.Values(value) {
			removeRules(child)
		}
	case []any:
		for _, child := range value {
			removeRules(child)
		}
	}
}
