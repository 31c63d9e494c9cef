//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// The CustomResourceDefinition of Foo: ours, and that of the articles.
var (
	ourFooManifest      = filepath.Join(repository, "config", "crd", "samplecontroller.k8s.io_foos.yaml")
	articlesFooManifest = filepath.Join("testdata", "articles", "crd.yaml")
)

// installFooCRD applies one of the two, and waits until its schema is in force:
// ours refuses a name that the articles' lets in.
func installFooCRD(t *testing.T, path string) {
	t.Helper()
	crds, err := readManifests(path)
	if err != nil {
		t.Fatal(err)
	}
	// The test's own context may be done by now.
	ctx := context.WithoutCancel(t.Context())
	if err := env.installCRD(ctx, crds[0]); err != nil {
		t.Fatal(err)
	}
	probe := untypedFoo(t, "probe", `{deploymentName: Bad_Name}`)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for deadline := time.Now().Add(patience); ; {
		_, err := env.dynamic.Resource(fooResource).Namespace("default").Create(ctx, probe, dryRun)
		if path == ourFooManifest && apierrors.IsInvalid(err) || path == articlesFooManifest && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the schema of %s isn't in force: %v", path, err)
		}
	}
}

// deleteFooCRD deletes the CustomResourceDefinition with every Foo, and waits
// until it is gone.
func deleteFooCRD(t *testing.T) {
	t.Helper()
	client, name := env.dynamic.Resource(crdResource), "foos."+samplev1alpha1.GroupName
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the CustomResourceDefinition: %v", err)
	}
	awaitWithin(t, collection, "the CustomResourceDefinition goes", func(ctx context.Context) error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is still there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// createExampleFoo creates the articles' Foo, as kubectl would.
func createExampleFoo(t *testing.T, namespace string) {
	t.Helper()
	objects, err := readManifests(filepath.Join("testdata", "articles", "example-foo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.dynamic.Resource(fooResource).Namespace(namespace).Create(t.Context(), objects[0], strict); err != nil {
		t.Fatalf("create the articles' Foo: %v", err)
	}
}

func TestTheArticlesManifestsWorkUnchanged(t *testing.T) {
	t.Cleanup(func() { installFooCRD(t, ourFooManifest) })
	for sentence, install := range map[string]func(t *testing.T){
		"with our CustomResourceDefinition":            func(*testing.T) {},
		"with the articles' applied over ours":         func(t *testing.T) { installFooCRD(t, articlesFooManifest) },
		"with the articles' alone":                     func(t *testing.T) { deleteFooCRD(t); installFooCRD(t, articlesFooManifest) },
		"with ours applied over the articles'":         func(t *testing.T) { installFooCRD(t, articlesFooManifest); installFooCRD(t, ourFooManifest) },
		"with the articles' in place of a running one": func(t *testing.T) { startOperator(t).stop(); installFooCRD(t, articlesFooManifest) },
	} {
		t.Run(sentence, func(t *testing.T) {
			installFooCRD(t, ourFooManifest)
			install(t)
			operator := startOperator(t)
			namespace := newNamespace(t)
			createExampleFoo(t, namespace)
			awaitReplicas(t, namespace, "example-foo", 5)
			setReady(t, namespace, "example-foo", "True", 5)
			await(t, "five available pods in the status", func(ctx context.Context) error { return availableIs(ctx, namespace, 5) })
			foo, err := foosIn(namespace).Get(t.Context(), "example-foo", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			deploymentOf(t, namespace, "example-foo", foo)
			awaitFooEvents(t, foo, "Normal Synced")

			// Without a place for the condition there is no endless try either.
			operator.requests.awaitQuiet(t, time.Second)
			before := len(operator.requests.about(namespace, false))
			operator.requests.awaitQuiet(t, 3*time.Second)
			if after := operator.requests.about(namespace, false); len(after) != before {
				t.Errorf("it goes on: %v", after[before:])
			}
			if writes := slices.DeleteFunc(operator.requests.about(namespace, true), func(line string) bool { return !isStatusWrite(line) }); len(writes) > 20 {
				t.Errorf("the status was written %d times", len(writes))
			}
		})
	}
}

// TestABadFooFromTheArticlesSchemaIsReported once our schema is in force: it was
// let in before, can't be followed, and can be corrected.
func TestABadFooFromTheArticlesSchemaIsReported(t *testing.T) {
	t.Cleanup(func() { installFooCRD(t, ourFooManifest) })
	installFooCRD(t, articlesFooManifest)
	namespace := newNamespace(t)
	if _, err := env.dynamic.Resource(fooResource).Namespace(namespace).Create(t.Context(), untypedFoo(t, "bad", `{deploymentName: Bad_Name}`), strict); err != nil {
		t.Fatalf("create a bad Foo: %v", err)
	}
	installFooCRD(t, ourFooManifest)
	startOperator(t)
	foo := awaitSynced(t, namespace, "bad", samplev1alpha1.ReasonInvalidSpec)
	if message := foo.Status.Conditions[0].Message; !strings.Contains(message, `spec.deploymentName is "Bad_Name"`) {
		t.Errorf("the message is %s", message)
	}
	changeFoo(t, namespace, "bad", `{"deploymentName":"good"}`)
	foo = awaitSynced(t, namespace, "bad", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "good", foo)
}

// TestTheCRDIsDeletedAndAppliedAgainUnderARunningOperator loses every Foo, and
// nothing else: databases are looked after all the time.
func TestTheCRDIsDeletedAndAppliedAgainUnderARunningOperator(t *testing.T) {
	t.Cleanup(func() { installFooCRD(t, ourFooManifest) })
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	before := deploymentOf(t, namespace, "web", awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced))
	deleteFooCRD(t)
	newDatabase(t, namespace, "orders", "db")
	awaitUnscheduled(t, namespace, "orders")

	installFooCRD(t, ourFooManifest)
	newFoo(t, namespace, "example-foo", "web")
	newFoo(t, namespace, "another", "other")
	foo := awaitSyncedWithin(t, collection, namespace, "another", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "other", foo)
	awaitGone(t, namespace, before)
	foo = awaitSyncedWithin(t, collection, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "web", foo)
}

// TestOurSchemaAsksForNoMoreThanTheArticles compares the two, field by field.
func TestOurSchemaAsksForNoMoreThanTheArticles(t *testing.T) {
	ours, articles := readSchema(t, ourFooManifest), readSchema(t, articlesFooManifest)
	for _, complaint := range missingFrom(ours, articles, "") {
		t.Error(complaint)
	}
	annotation := "api-approved.kubernetes.io"
	if got, want := readCRD(t, ourFooManifest).GetAnnotations()[annotation], readCRD(t, articlesFooManifest).GetAnnotations()[annotation]; got != want || want == "" {
		t.Errorf("the annotation %s is %q, want %q", annotation, got, want)
	}
}

func readCRD(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	crds, err := readManifests(path)
	if err != nil {
		t.Fatal(err)
	}
	return crds[0]
}

func readSchema(t *testing.T, path string) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(readCRD(t, path).Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%s has the versions %v (%v)", path, versions, err)
	}
	version, _ := versions[0].(map[string]any)
	schema, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// missingFrom says what of a schema the other doesn't have: a field, its type,
// its bounds; or that the other requires a field.
func missingFrom(ours, theirs map[string]any, path string) []string {
	var complaints []string
	for _, key := range []string{"type", "minimum", "maximum", "required"} {
		if fmt.Sprint(ours[key]) != fmt.Sprint(theirs[key]) {
			complaints = append(complaints, fmt.Sprintf("%s: %s is %v, in the articles %v", path, key, ours[key], theirs[key]))
		}
	}
	ourFields, _ := ours["properties"].(map[string]any)
	theirFields, _ := theirs["properties"].(map[string]any)
	for name, field := range theirFields {
		our, _ := ourFields[name].(map[string]any)
		their, _ := field.(map[string]any)
		complaints = append(complaints, missingFrom(our, their, path+"."+name)...)
	}
	return complaints
}
