// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestOnlyPodsThatTerminateAreDeleted(t *testing.T) {
	for sentence, row := range map[string]struct {
		pod  *corev1.Pod
		gone bool
	}{
		"one that terminates is":                     {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "1", DeletionTimestamp: new(metav1.Now())}}, true},
		"one that has taken its place isn't":         {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "2"}}, false},
		"one that is gone isn't asked for once more": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", UID: "3"}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			row.pod.Namespace = "default"
			client := fake.NewClientset(row.pod)
			err := carefulClient{client}.CoreV1().Pods("default").Delete(t.Context(), "db-0", *metav1.NewDeleteOptions(0))
			if err != nil {
				t.Errorf("it says %v", err)
			}
			var uids []string
			for _, action := range client.Actions() {
				if deletion, ok := action.(clienttesting.DeleteActionImpl); ok {
					uids = append(uids, string(*deletion.DeleteOptions.Preconditions.UID))
				}
			}
			if row.gone && (len(uids) != 1 || uids[0] != string(row.pod.UID)) || !row.gone && len(uids) > 0 {
				t.Errorf("deleted are those with UIDs %q", uids)
			}
		})
	}
}
