//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	foov1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// TestAFooRunsItsDeployment is the articles' example, with real pods.
func TestAFooRunsItsDeployment(t *testing.T) {
	t.Parallel()
	// The image of a Foo's pods runs as root.
	namespace := newNamespaceWith(t, "baseline")
	foos := env.databases.SamplecontrollerV1alpha1().Foos(namespace)
	_, err := foos.Create(t.Context(), &foov1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "example-foo"},
		Spec:       foov1alpha1.FooSpec{DeploymentName: "first", Replicas: new(int32(2))},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitForAvailable(t, namespace, 2)
	if _, err := foos.Patch(t.Context(), "example-foo", types.MergePatchType, []byte(`{"spec":{"deploymentName":"second","replicas":1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "another Deployment in place of the first", func(ctx context.Context) error {
		deployments := env.kube.AppsV1().Deployments(namespace)
		if _, err := deployments.Get(ctx, "first", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the first is still there"))
		}
		_, err := deployments.Get(ctx, "second", metav1.GetOptions{})
		return err
	})
	waitForAvailable(t, namespace, 1)
}

// waitForAvailable waits until the Foo says that so many of its pods are available.
func waitForAvailable(t *testing.T, namespace string, count int32) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d available pods", count), func(ctx context.Context) error {
		foo, err := env.databases.SamplecontrollerV1alpha1().Foos(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
		if err == nil && foo.Status.AvailableReplicas != count {
			err = fmt.Errorf("%d are available", foo.Status.AvailableReplicas)
		}
		return err
	})
}
