// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// noon is when the tests take place.
var noon = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// newFoo returns the Foo of the articles, changed by the options.
func newFoo(options ...func(*v1alpha1.Foo)) *v1alpha1.Foo {
	foo := &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "example-foo", Namespace: "shop", UID: "foo-uid", Generation: 3},
		Spec:       v1alpha1.FooSpec{DeploymentName: "example-foo", Replicas: new(int32(5))},
	}
	for _, option := range options {
		option(foo)
	}
	return foo
}

// newDeployment returns the Deployment that the controller makes for a Foo, as
// a cache holds it, changed by the options.
func newDeployment(t *testing.T, foo *v1alpha1.Foo, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	wanted, err := seal(Render(foo))
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.fields, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.UID = "deployment-uid"
	for _, option := range options {
		option(deployment)
	}
	return deployment
}

// ownedBy makes a controller of this UID the Deployment's owner.
func ownedBy(uid types.UID) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) {
		deployment.OwnerReferences[0].UID = uid
	}
}

func withoutOwner(deployment *appsv1.Deployment) { deployment.OwnerReferences = nil }

func terminating(deployment *appsv1.Deployment) {
	deployment.DeletionTimestamp = new(metav1.NewTime(noon))
}

func available(count int32) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) { deployment.Status.AvailableReplicas = count }
}

func named(name string) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) { deployment.Name = name }
}

// synced is the condition of a Foo whose Deployment is as it should be.
func synced(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSynced,
		Message: messageSynced, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
	}
}
