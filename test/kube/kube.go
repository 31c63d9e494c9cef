// SPDX-License-Identifier: Apache-2.0

// Package kube is what tests against a cluster have in common.
package kube

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Eventually waits until check returns no error, which it asks for once in step, and
// fails the test with its last one if that takes longer than the bound.
func Eventually(t *testing.T, step, bound time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	var last error
	for {
		if err := check(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, bound, last)
		case <-ticker.C:
		}
	}
}

// NewNamespace makes a namespace, whose name begins with a prefix, and which goes with
// the test.
func NewNamespace(t *testing.T, client kubernetes.Interface, prefix string, labels map[string]string) string {
	t.Helper()
	namespaces := client.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}
