// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// carefulClient deletes a pod only while it terminates, and by its UID, as a kubelet does. kwok by itself deletes by name,
// and twice, since the first time makes one more change of the pod: the second one would meet the pod that a StatefulSet
// has made meanwhile in the place of the first.
type carefulClient struct{ kubernetes.Interface }

func (c carefulClient) CoreV1() typedcorev1.CoreV1Interface { return carefulCore{c.Interface.CoreV1()} }

type carefulCore struct{ typedcorev1.CoreV1Interface }

func (c carefulCore) Pods(namespace string) typedcorev1.PodInterface {
	return carefulPods{c.CoreV1Interface.Pods(namespace)}
}

type carefulPods struct{ typedcorev1.PodInterface }

// Delete has nothing to do where the pod is gone, or another has its name.
func (p carefulPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	// A cache of the API server's may be stale: then there is none of that UID any more.
	pod, err := p.Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err == nil && pod.DeletionTimestamp != nil {
		options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		err = p.PodInterface.Delete(ctx, name, options)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
