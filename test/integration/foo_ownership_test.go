//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// foreignDeployment creates a Deployment that is nobody's, changed by the
// options, and waits until its own controller has done with it.
func foreignDeployment(t *testing.T, namespace string, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"a": "b"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	for _, option := range options {
		option(deployment)
	}
	deployments := env.kube.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a foreign Deployment: %v", err)
	}
	await(t, "its own controller has done with it", func(ctx context.Context) (err error) {
		deployment, err = deployments.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && (deployment.Status.ObservedGeneration == 0 || len(deployment.Status.Conditions) < 2) {
			err = fmt.Errorf("the status is %+v", deployment.Status)
		}
		return err
	})
	return deployment
}

func labelled(deployment *appsv1.Deployment) {
	deployment.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
}

func TestAForeignDeploymentIsLeftAsItIs(t *testing.T) {
	operator := startOperator(t)
	for sentence, options := range map[string][]func(*appsv1.Deployment){
		"that the operator doesn't see": nil,
		"that carries our label":        {labelled},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			foreignDeployment(t, namespace, options...)
			path := "/apis/apps/v1/namespaces/" + namespace + "/deployments/web"
			before, err := env.kube.AppsV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Raw()
			if err != nil {
				t.Fatal(err)
			}
			newFoo(t, namespace, "example-foo", "web")
			foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonErrResourceExists)
			if message := foo.Status.Conditions[0].Message; !strings.Contains(message, `Resource "web" already exists and is not managed by Foo`) {
				t.Errorf("the message is %s", message)
			}
			changeFoo(t, namespace, "example-foo", `{"replicas":2}`)
			awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonErrResourceExists)
			operator.requests.awaitQuiet(t, time.Second)
			after, err := env.kube.AppsV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Raw()
			if err != nil {
				t.Fatal(err)
			}
			if string(before) != string(after) {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
			awaitFooEvents(t, foo, "Warning ErrResourceExists")

			// What isn't seen is looked at every 30 s.
			if err := env.kube.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the foreign Deployment: %v", err)
			}
			foo = awaitSyncedWithin(t, 45*time.Second, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			deploymentOf(t, namespace, "web", foo)
			awaitFooEvents(t, foo, "Warning ErrResourceExists", "Normal Synced")
		})
	}
}

// TestAForgedOwnerReferenceMakesNothingOurs: right kind and name, wrong UID. The
// garbage collector deletes such an object, so a finalizer holds it.
func TestAForgedOwnerReferenceMakesNothingOurs(t *testing.T) {
	operator := startOperator(t)
	for sentence, option := range map[string]func(*appsv1.Deployment){
		"that the operator doesn't see": func(*appsv1.Deployment) {},
		"that carries our label":        labelled,
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			before := foreignDeployment(t, namespace, option, func(deployment *appsv1.Deployment) {
				deployment.Finalizers = []string{"example.com/hold"}
				deployment.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: samplev1alpha1.GroupVersion.String(), Kind: "Foo", Name: "example-foo",
					UID: "11111111-1111-1111-1111-111111111111", Controller: new(true), BlockOwnerDeletion: new(true),
				}}
			})
			newFoo(t, namespace, "example-foo", "web")
			foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonErrResourceExists)
			operator.requests.awaitQuiet(t, time.Second)
			deployments := env.kube.AppsV1().Deployments(namespace)
			after, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(before.Spec, after.Spec) || !reflect.DeepEqual(before.Labels, after.Labels) ||
				!reflect.DeepEqual(before.Annotations, after.Annotations) || !reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
				t.Errorf("it was changed: %+v, was %+v", after, before)
			}
			writes := operator.requests.about(namespace, true)
			if index := slices.IndexFunc(writes, func(line string) bool { return strings.Contains(line, "/deployments/web") }); index >= 0 {
				t.Errorf("the operator sent %s", writes[index])
			}
			awaitFooEvents(t, foo, "Warning ErrResourceExists")

			release := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
				t.Fatalf("release it: %v", err)
			}
			awaitGone(t, namespace, before)
			// By itself it would look after 30 s where it sees nothing.
			changeFoo(t, namespace, "example-foo", `{"replicas":2}`)
			foo = awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			deploymentOf(t, namespace, "web", foo)
		})
	}
}

// TestTwoFoosOfOneDeploymentName also shows that what one gives up is what the
// other waits for.
func TestTwoFoosOfOneDeploymentName(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "first", "web")
	first := awaitSynced(t, namespace, "first", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", first)
	newFoo(t, namespace, "second", "web")
	second := awaitSynced(t, namespace, "second", samplev1alpha1.ReasonErrResourceExists)
	if message := second.Status.Conditions[0].Message; !strings.Contains(message, "Foo first") {
		t.Errorf("the message doesn't say whose it is: %s", message)
	}
	changeFoo(t, namespace, "first", `{"deploymentName":"other"}`)
	awaitSynced(t, namespace, "second", samplev1alpha1.ReasonSynced)
	after := deploymentOf(t, namespace, "web", second)
	if after.UID == before.UID {
		t.Error("the second took over what was the first's")
	}
	deploymentOf(t, namespace, "other", first)
}

// TestAFooKeepsWhatItHasWhileItsNewNameIsTaken by a DatabaseManager, to whom Foo
// is as foreign as the other way round.
func TestAFooKeepsWhatItHasWhileItsNewNameIsTaken(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "cache")
	awaitUnscheduled(t, namespace, "orders")
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", foo)
	changeFoo(t, namespace, "example-foo", `{"deploymentName":"cache"}`)
	foo = awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonErrResourceExists)
	if message := foo.Status.Conditions[0].Message; !strings.Contains(message, "DatabaseManager orders") {
		t.Errorf("the message doesn't say whose it is: %s", message)
	}
	if after := deploymentOf(t, namespace, "web", foo); after.UID != before.UID {
		t.Error("the old Deployment was replaced")
	}

	newDatabase(t, namespace, "invoices", "web")
	ready := awaitReady(t, namespace, "invoices", v1alpha1.ReasonConflict)
	if !strings.Contains(ready.Message, "Deployment web") {
		t.Errorf("the database doesn't say what is in its way: %s", ready.Message)
	}
	if after := deploymentOf(t, namespace, "web", foo); after.UID != before.UID || *after.Spec.Replicas != 5 {
		t.Error("the database changed the Foo's Deployment")
	}
}

// TestADeploymentThatLosesItsOwnerIsNobodys: what says whose it is is gone, so it
// is left alone.
func TestADeploymentThatLosesItsOwnerIsNobodys(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "web", foo)
	deployments := env.kube.AppsV1().Deployments(namespace)
	disown := []byte(`{"metadata":{"ownerReferences":null},"spec":{"replicas":0}}`)
	if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, disown, metav1.PatchOptions{}); err != nil {
		t.Fatalf("remove the owner: %v", err)
	}
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonErrResourceExists)
	deployment, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *deployment.Spec.Replicas != 0 || len(deployment.OwnerReferences) > 0 {
		t.Errorf("it was taken over: %+v (%v)", deployment, errors.Join(err))
	}
}
