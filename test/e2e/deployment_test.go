//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAFailedPodIsReplaced shows what the articles begin with: a built-in
// controller sees that a Deployment's pod is gone, and makes another.
func TestAFailedPodIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	labels := map[string]string{"app": "web"}
	template := clientPod(anyEngine().image).Spec
	template.Volumes, template.Containers[0].VolumeMounts = nil, nil
	_, err := env.kube.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := waitForReadyPods(t, namespace, 2, nil)
	if err := env.kube.CoreV1().Pods(namespace).Delete(t.Context(), before[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	after := waitForReadyPods(t, namespace, 2, before[:1])
	if !slices.Contains(after, before[1]) {
		t.Errorf("pod %s was replaced too: there are %q", before[1], after)
	}
}

// waitForReadyPods waits until there are just that many pods, all ready and none
// of those in gone, and returns their names.
func waitForReadyPods(t *testing.T, namespace string, count int, gone []string) []string {
	t.Helper()
	var names []string
	eventually(t, time.Minute, fmt.Sprintf("%d ready pods", count), func(ctx context.Context) error {
		pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		names = nil
		for _, pod := range pods.Items {
			if slices.ContainsFunc(pod.Status.Conditions, isReady) && !slices.Contains(gone, pod.Name) {
				names = append(names, pod.Name)
			}
		}
		if len(names) != count || len(pods.Items) != count {
			return fmt.Errorf("%d of %d pods are ready", len(names), len(pods.Items))
		}
		return nil
	})
	return names
}
