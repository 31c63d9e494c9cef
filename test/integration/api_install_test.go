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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestInstallManifestIsAccepted applies install.yaml strictly. All but the CRDs
// and the namespace, which the rest is in, are dry runs.
func TestInstallManifestIsAccepted(t *testing.T) {
	objects, err := readManifests(filepath.Join(repository, "config", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(env.kube.Discovery())
	if err != nil {
		t.Fatalf("ask for the API's resources: %v", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		options := metav1.PatchOptions{FieldManager: fieldManager, Force: new(true), FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if object.GetKind() == "Namespace" {
			options.DryRun = nil
		}
		if err := apply(t.Context(), mapper, object, options); err != nil {
			t.Errorf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	want := []string{"CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ClusterRole", "ClusterRole", "Deployment"}
	if !slices.Equal(kinds, want) {
		t.Errorf("got the objects %v, want %v", kinds, want)
	}
}

// apply applies any object. The options of a patch are used, since those of an
// apply have no field validation.
func apply(ctx context.Context, mapper meta.RESTMapper, object *unstructured.Unstructured, options metav1.PatchOptions) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = env.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = env.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = client.Patch(ctx, object.GetName(), "application/apply-patch+yaml", body, options)
	return err
}

// TestObjectsThatAnOlderSchemaLetInStayUsable works on a copy of the CRD under
// another group: once without rules, then with them. What was stored in between
// can still be changed elsewhere, but not made worse.
func TestObjectsThatAnOlderSchemaLetInStayUsable(t *testing.T) {
	lax, strictCRD := renamedCRD(t), renamedCRD(t)
	removeRules(lax.Object)
	crds := env.dynamic.Resource(crdResource)
	t.Cleanup(func() {
		if err := crds.Delete(context.Background(), lax.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the copy of the CRD: %v", err)
		}
	})
	if err := env.installCRD(t.Context(), lax); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: copiedGroup, Version: "v1alpha1", Resource: "databasemanagers"}
	client := env.dynamic.Resource(resource).Namespace(newNamespace(t))
	bad := database(t, "old", `{deploymentName: Bad_Name, dbtype: redis, version: latest}`)
	bad.SetAPIVersion(copiedGroup + "/v1alpha1")
	if err := eventually(t, func(ctx context.Context) error {
		_, err := client.Create(ctx, bad, metav1.CreateOptions{})
		return err
	}); err != nil {
		t.Fatalf("create a database under a schema without rules: %v", err)
	}
	if err := env.installCRD(t.Context(), strictCRD); err != nil {
		t.Fatal(err)
	}
	other := bad.DeepCopy()
	other.SetName("new")
	if err := eventually(t, func(ctx context.Context) error {
		_, err := client.Create(ctx, other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) {
			return nil
		}
		return apierrors.NewServiceUnavailable("the rules aren't in force yet")
	}); err != nil {
		t.Fatalf("wait for the rules: %v", err)
	}

	patch := func(patch string, subresources ...string) error {
		_, err := client.Patch(t.Context(), "old", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	if err := patch(`{"spec": {"replicas": 3}}`); err != nil {
		t.Errorf("another field can't be changed: %v", err)
	}
	if err := patch(`{"status": {"observedGeneration": 2}}`, "status"); err != nil {
		t.Errorf("the status can't be written: %v", err)
	}
	if err := patch(`{"spec": {"version": "8.0"}}`); err != nil {
		t.Errorf("a bad value can't be corrected: %v", err)
	}
	if err := patch(`{"spec": {"version": "newest"}}`); !apierrors.IsInvalid(err) {
		t.Errorf("a new bad value: got %v, want a refusal", err)
	}
}

const copiedGroup = "schema-test.coolops.cn"

// renamedCRD is our CRD under another group, and without its short name.
func renamedCRD(t *testing.T) *unstructured.Unstructured {
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
	crd.SetName("databasemanagers." + copiedGroup)
	spec, _ := crd.Object["spec"].(map[string]any)
	spec["group"] = copiedGroup
	names, _ := spec["names"].(map[string]any)
	delete(names, "shortNames")
	return crd
}

// removeRules takes every CEL rule out of a schema.
func removeRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "x-kubernetes-validations")
		for _, child := range slices.Collect(maps.Values(value)) {
			removeRules(child)
		}
	case []any:
		for _, child := range value {
			removeRules(child)
		}
	}
}

// eventually repeats a call until it succeeds, for 30 s at most: a changed CRD
// takes a moment to be in force. It returns the last error.
func eventually(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = call(ctx)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
