//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// containerHas tells whether a field of the container nginx is one value.
func containerHas(field string, want any) func(*unstructured.Unstructured) bool {
	return func(child *unstructured.Unstructured) bool {
		containers, _, _ := unstructured.NestedSlice(child.Object, "spec", "template", "spec", "containers")
		return slices.ContainsFunc(containers, func(element any) bool {
			container, _ := element.(map[string]any)
			return container["name"] == "nginx" && container[field] == want
		})
	}
}

// TestWhatIsAFoosIsPutBack changes each field that the controller owns and the
// API server lets anybody change: it keeps the selector, and the pods' labels
// that belong to it, as they are.
func TestWhatIsAFoosIsPutBack(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", foo)
	hash := before.Annotations[v1alpha1.AnnotationIntentHash]
	image := func(field, value string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","` + field + `":"` + value + `"}]}}}}`
	}
	for sentence, row := range map[string]struct {
		kind   types.PatchType
		patch  string
		isBack func(*unstructured.Unstructured) bool
	}{
		"the number of pods":          {types.MergePatchType, `{"spec":{"replicas":1}}`, has(5, "spec", "replicas")},
		"the number of pods, to none": {types.MergePatchType, `{"spec":{"replicas":0}}`, has(5, "spec", "replicas")},
		"the image":                   {types.StrategicMergePatchType, image("image", "httpd"), containerHas("image", "nginx:latest")},
		"the pull policy":             {types.StrategicMergePatchType, image("imagePullPolicy", "Always"), containerHas("imagePullPolicy", "IfNotPresent")},
		"the container": {
			types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"apache","image":"httpd"}]}}}}`,
			containerHas("image", "nginx:latest"),
		},
		"the label app":                   {types.MergePatchType, `{"metadata":{"labels":{"app":"httpd"}}}`, hasLabel("app", "nginx")},
		"the label controller":            {types.MergePatchType, `{"metadata":{"labels":{"controller":null}}}`, hasLabel("controller", "example-foo")},
		"the label that it is seen by":    {types.MergePatchType, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, hasLabel(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)},
		"the value of that label":         {types.MergePatchType, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"helm"}}}`, hasLabel(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)},
		"all labels":                      {types.MergePatchType, `{"metadata":{"labels":null}}`, hasLabel("controller", "example-foo")},
		"the record of the last intent":   {types.MergePatchType, `{"metadata":{"annotations":{"coolops.cn/intent-hash":"0"}}}`, has(hash, "metadata", "annotations", v1alpha1.AnnotationIntentHash)},
		"the loss of that record":         {types.MergePatchType, `{"metadata":{"annotations":{"coolops.cn/intent-hash":null}}}`, has(hash, "metadata", "annotations", v1alpha1.AnnotationIntentHash)},
		"what the owner reference allows": {types.StrategicMergePatchType, `{"metadata":{"ownerReferences":[{"uid":"` + string(foo.UID) + `","blockOwnerDeletion":false}]}}`, firstOf(true, "blockOwnerDeletion", "metadata", "ownerReferences")},
		"the name in the owner reference": {types.StrategicMergePatchType, `{"metadata":{"ownerReferences":[{"uid":"` + string(foo.UID) + `","apiVersion":"samplecontroller.k8s.io/v1"}]}}`, firstOf("samplecontroller.k8s.io/v1alpha1", "apiVersion", "metadata", "ownerReferences")},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := env.dynamic.Resource(childResources["Deployment"]).Namespace(namespace)
			changed, err := client.Patch(t.Context(), "web", row.kind, []byte(row.patch), metav1.PatchOptions{FieldManager: fieldManager})
			if err != nil || row.isBack(changed) {
				t.Fatalf("nothing was changed (%v)", err)
			}
			await(t, "put back", func(ctx context.Context) error {
				child, err := client.Get(ctx, "web", metav1.GetOptions{})
				switch {
				case err != nil:
					return err
				case child.GetUID() != before.UID:
					return errors.New("it is another object")
				case !row.isBack(child):
					return fmt.Errorf("it is still changed: %v", child.Object)
				default:
					return nil
				}
			})
		})
	}
	awaitFooEvents(t, foo, "Normal Synced")
}

// TestALabelThatWasStrippedWhileNobodyLookedIsRestored is about a Deployment
// that the operator can't see: to its informer, one without the label isn't there.
func TestALabelThatWasStrippedWhileNobodyLookedIsRestored(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", foo)
	setReady(t, namespace, "web", "True", 5)
	await(t, "five available pods in the status", func(ctx context.Context) error { return availableIs(ctx, namespace, 5) })
	operator.stop()
	strip := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
	if _, err := env.kube.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.MergePatchType, strip, metav1.PatchOptions{}); err != nil {
		t.Fatalf("strip the label: %v", err)
	}
	again := startOperator(t)
	await(t, "the label is back", func(ctx context.Context) error {
		deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && (deployment.UID != before.UID || deployment.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue) {
			err = fmt.Errorf("%s has the labels %v", deployment.UID, deployment.Labels)
		}
		return err
	})
	again.requests.awaitQuiet(t, time.Second)
	if writes := again.requests.about(namespace, true); slices.ContainsFunc(writes, isStatusWrite) {
		t.Errorf("the status, which was right all the time, was written: %v", writes)
	}
}

func TestADeploymentThatIsDeletedIsMadeAgain(t *testing.T) {
	startOperator(t)
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(how), func(t *testing.T) {
			namespace := newNamespace(t)
			newFoo(t, namespace, "example-foo", "web")
			foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			before := deploymentOf(t, namespace, "web", foo)
			if err := env.kube.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
				t.Fatalf("delete the Deployment: %v", err)
			}
			awaitGone(t, namespace, before)
			awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			deploymentOf(t, namespace, "web", foo)
		})
	}
}

// TestAStatusThatSomebodyElseWritesIsPutBack keeps the conditions of others.
func TestAStatusThatSomebodyElseWritesIsPutBack(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	for sentence, patch := range map[string]string{
		"a number":       `{"status":{"availableReplicas":9}}`,
		"the condition":  `{"status":{"conditions":[{"type":"Synced","status":"False","reason":"Forged","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		"no status":      `{"status":null}`,
		"one more":       `{"status":{"availableReplicas":9,"conditions":[{"type":"Theirs","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		"and once again": `{"status":{"availableReplicas":8}}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := foosIn(namespace).Patch(t.Context(), "example-foo", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}, "status"); err != nil {
				t.Fatalf("write the status: %v", err)
			}
			await(t, "put back", func(ctx context.Context) error {
				foo, err := foosIn(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
				if err != nil {
					return err
				}
				reasons := map[string]string{}
				for _, condition := range foo.Status.Conditions {
					reasons[condition.Type] = condition.Reason
				}
				if foo.Status.AvailableReplicas != 0 || reasons["Synced"] != "Synced" || sentence == "one more" && reasons["Theirs"] != "R" {
					return fmt.Errorf("it is %+v", foo.Status)
				}
				return nil
			})
		})
	}
}
