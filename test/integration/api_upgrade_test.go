//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// TestTheCRDOfTheReleaseBeforeIsReplacedUnderDatabasesThatRun stores databases
// under the CRD of the release before, has the operator make their children, and
// then brings in the CRD of today.
func TestTheCRDOfTheReleaseBeforeIsReplacedUnderDatabasesThatRun(t *testing.T) {
	namespace := newNamespace(t)
	t.Cleanup(func() { installDatabaseCRD(t, func(map[string]any) {}) })
	before := readManifest(t, "crd-before.yaml")[0]
	if err := env.installCRD(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	databases := readManifest(t, "objects-before.yaml")
	expectEveryField(t, before, databases)
	client := env.dynamic.Resource(databaseResource).Namespace(namespace)
	for _, database := range databases {
		await(t, "store "+database.GetName(), func(ctx context.Context) error {
			_, err := client.Create(ctx, database, strict)
			return err
		})
	}
	operator := startOperator(t)
	awaitAllSeen(t, namespace, databases)
	operator.requests.awaitQuiet(t, time.Second)
	children, stored, written := versions(t, namespace), specsAsStored(t, namespace), len(operator.requests.about(namespace, true))

	installDatabaseCRD(t, func(map[string]any) {})
	await(t, "the schema of today is in force", func(context.Context) error { return acceptsNewField(t, namespace) })
	if got := specsAsStored(t, namespace); !maps.Equal(got, stored) {
		t.Errorf("under the schema of today the specs are %v, and were %v", got, stored)
	}
	for _, database := range databases {
		expectUsable(t, namespace, database.GetName())
	}
	// One that is made now is served after those that were changed.
	other := newNamespace(t)
	newDatabase(t, other, "orders", "db")
	awaitUnscheduled(t, other, "orders")
	operator.requests.awaitQuiet(t, time.Second)
	for _, request := range operator.requests.about(namespace, true)[written:] {
		if !strings.Contains(request, "/databasemanagers/") && !strings.Contains(request, "/events") {
			t.Errorf("the new schema brought about %s", request)
		}
	}
	if after := versions(t, namespace); !slices.Equal(after, children) {
		t.Errorf("the children are %v, and were %v", after, children)
	}
}

func readManifest(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readManifests(filepath.Join("testdata", name))
	if err != nil || len(objects) == 0 {
		t.Fatalf("read %s: %v", name, err)
	}
	return objects
}

// awaitAllSeen waits until the operator has acted upon every database.
func awaitAllSeen(t *testing.T, namespace string, databases []*unstructured.Unstructured) {
	t.Helper()
	for _, database := range databases {
		name := database.GetName()
		await(t, "the operator sees "+name, func(ctx context.Context) error {
			seen, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && (seen.Status.ObservedGeneration != seen.Generation || len(seen.Status.Members) == 0) {
				err = fmt.Errorf("its status is %+v", seen.Status)
			}
			return err
		})
	}
}

// acceptsNewField tells whether the API server knows a field that the release
// before didn't have.
func acceptsNewField(t *testing.T, namespace string) error {
	t.Helper()
	options := strict
	options.DryRun = []string{metav1.DryRunAll}
	_, err := env.dynamic.Resource(databaseResource).Namespace(namespace).
		Create(t.Context(), database(t, "new", withField(`service: {type: NodePort}`)), options)
	return err
}

// expectUsable reads a database as every client does, changes a label of it, and
// writes its status.
func expectUsable(t *testing.T, namespace, name string) {
	t.Helper()
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	typed, err := databases.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Errorf("read %s: %v", name, err)
		return
	}
	await(t, "change a label of "+name, func(ctx context.Context) error {
		if typed, err = databases.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		typed.Labels = map[string]string{"changed": "yes"}
		_, err = databases.Update(ctx, typed, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	patch := []byte(`{"metadata":{"annotations":{"patched":"yes"}}}`)
	if _, err := databases.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		t.Errorf("patch %s: %v", name, err)
	}
	status := []byte(fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, typed.Generation))
	if _, err := databases.Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{FieldManager: fieldManager}, "status"); err != nil {
		t.Errorf("write the status of %s: %v", name, err)
	}
}

// specsAsStored returns the spec of each database, as text.
func specsAsStored(t *testing.T, namespace string) map[string]string {
	t.Helper()
	list, err := env.dynamic.Resource(databaseResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]string{}
	for _, item := range list.Items {
		specs[item.GetName()] = textOf(t, item.Object["spec"])
	}
	return specs
}

// expectEveryField holds the objects to the schema that they stand for: each
// field of its spec is in one of them.
func expectEveryField(t *testing.T, crd *unstructured.Unstructured, objects []*unstructured.Unstructured) {
	t.Helper()
	encoded, err := crd.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema explained `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(encoded, &schema); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, object := range objects {
		collectFields("spec", object.Object["spec"], used)
	}
	for _, path := range fieldsOf("spec", schema.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]) {
		if !used[path] {
			t.Errorf("no object has the field %s of the release before", path)
		}
	}
}

// fieldsOf returns the paths of the fields below a schema; those of a list are
// those of its elements.
func fieldsOf(path string, schema explained) []string {
	if schema.Items != nil {
		return fieldsOf(path, *schema.Items)
	}
	if len(schema.Properties) == 0 {
		return []string{path}
	}
	var paths []string
	for name, property := range schema.Properties {
		paths = append(paths, fieldsOf(path+"."+name, property)...)
	}
	return paths
}

func collectFields(path string, value any, used map[string]bool) {
	used[path] = true
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			collectFields(path, element, used)
		}
	case map[string]any:
		for name, element := range value {
			collectFields(path+"."+name, element, used)
		}
	}
}
