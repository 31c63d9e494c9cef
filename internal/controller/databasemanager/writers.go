// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
)

// fieldManager is the name under which the operator owns fields of children;
// those of a status go under another, so that neither apply removes what the
// other set.
const (
	fieldManager       = "database-manager"
	statusFieldManager = "database-manager-status"
)

// writer writes children of one kind in one namespace.
type writer interface {
	Create(ctx context.Context, name string, fields map[string]any, existing kit.Existing) (metav1.Object, error)
	Apply(ctx context.Context, name string, uid types.UID, existing kit.Existing) (metav1.Object, error)
	Get(ctx context.Context, name string) (metav1.Object, error)
	Delete(ctx context.Context, name string, uid types.UID, version string) error
}

// writer returns the writer for a kind, and the resource that it writes. What
// holds data or opens it is pinned to the version that was read.
func (e execution) writer(kind plan.Kind) (schema.GroupResource, writer, error) {
	core, apps := e.config.Kubernetes.CoreV1(), e.config.Kubernetes.AppsV1()
	namespace := e.key.Namespace
	switch kind {
	case plan.KindConfigMap:
		return corev1.Resource("configmaps"), newWriter(core.ConfigMaps(namespace), func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, false), nil
	case plan.KindDeployment:
		return appsv1.Resource("deployments"), newWriter(apps.Deployments(namespace), func() *appsv1.Deployment { return &appsv1.Deployment{} }, false), nil
	case plan.KindSecret:
		return corev1.Resource("secrets"), newWriter(core.Secrets(namespace), func() *corev1.Secret { return &corev1.Secret{} }, true), nil
	case plan.KindService:
		return corev1.Resource("services"), newWriter(core.Services(namespace), func() *corev1.Service { return &corev1.Service{} }, false), nil
	case plan.KindStatefulSet:
		return appsv1.Resource("statefulsets"), newWriter(apps.StatefulSets(namespace), func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} }, false), nil
	case plan.KindVolumeClaim:
		return corev1.Resource("persistentvolumeclaims"), newWriter(core.PersistentVolumeClaims(namespace), func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} }, true), nil
	default:
		return schema.GroupResource{}, nil, fmt.Errorf("no way to write a %s", kind)
	}
}

func newWriter[T kit.Object](client kit.Client[T], newFn func() T, isPinned bool) writer {
	return &kit.Writer[T]{Client: client, New: newFn, Manager: fieldManager, IsPinned: isPinned}
}
