//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// watchLabels fails the test at its end if two pods of a namespace, which has but
// one database, were labelled as the primary at one time.
func watchLabels(t *testing.T, namespace string) {
	t.Helper()
	watcher, err := env.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch the members: %v", err)
	}
	found := make(chan []string)
	go func() {
		primaries, worst := map[string]bool{}, []string(nil)
		for event := range watcher.ResultChan() {
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				continue
			}
			delete(primaries, pod.Name)
			if event.Type != watch.Deleted && pod.Labels[v1alpha1.LabelRole] == string(v1alpha1.MemberRolePrimary) {
				primaries[pod.Name] = true
			}
			if len(primaries) > max(1, len(worst)) {
				worst = slices.Sorted(maps.Keys(primaries))
			}
		}
		found <- worst
	}()
	t.Cleanup(func() {
		watcher.Stop()
		if worst := <-found; len(worst) > 1 {
			t.Errorf("labelled as the primary were %v at once", worst)
		}
	})
}
