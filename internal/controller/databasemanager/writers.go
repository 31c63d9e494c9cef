// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
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
	sizeFieldManager   = "database-manager-size"
)

// writer writes children of one kind in one namespace.
type writer interface {
	Create(ctx context.Context, name string, fields map[string]any, existing kit.Existing) (metav1.Object, error)
	Apply(ctx context.Context, name string, expected kit.Expected, existing kit.Existing) (metav1.Object, error)
	Get(ctx context.Context, name string) (metav1.Object, error)
	Delete(ctx context.Context, name string, uid types.UID, version string) error
}

// writer returns the writer for a kind, and the resource that it writes. What
// holds data or opens it is pinned to the version that was read.
func (e *execution) writer(kind plan.Kind) (schema.GroupResource, writer, error) {
	core, apps := e.config.Kubernetes.CoreV1(), e.config.Kubernetes.AppsV1()
	namespace := e.key.Namespace
	switch kind {
	case plan.KindConfigMap:
		return corev1.Resource("configmaps"), &kit.Writer[*corev1.ConfigMap]{
			Client: core.ConfigMaps(namespace), New: newObject[corev1.ConfigMap], Manager: fieldManager, IsPinned: true,
		}, nil
	case plan.KindDeployment:
		return appsv1.Resource("deployments"), &kit.Writer[*appsv1.Deployment]{
			Client: apps.Deployments(namespace), New: newObject[appsv1.Deployment], Manager: fieldManager,
			Excluded: [][]string{{"spec", "strategy", "rollingUpdate"}},
		}, nil
	case plan.KindDisruptionBudget:
		return policyv1.Resource("poddisruptionbudgets"), &kit.Writer[*policyv1.PodDisruptionBudget]{
			Client: e.config.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace), New: newObject[policyv1.PodDisruptionBudget], Manager: fieldManager,
		}, nil
	case plan.KindNetworkPolicy:
		return networkingv1.Resource("networkpolicies"), &kit.Writer[*networkingv1.NetworkPolicy]{
			Client: e.config.Kubernetes.NetworkingV1().NetworkPolicies(namespace), New: newObject[networkingv1.NetworkPolicy], Manager: fieldManager,
		}, nil
	case plan.KindSecret:
		return corev1.Resource("secrets"), &kit.Writer[*corev1.Secret]{
			Client: core.Secrets(namespace), New: newObject[corev1.Secret], Manager: fieldManager, IsPinned: true,
		}, nil
	case plan.KindService:
		return corev1.Resource("services"), &kit.Writer[*corev1.Service]{
			Client: core.Services(namespace), New: newObject[corev1.Service], Manager: fieldManager,
		}, nil
	case plan.KindStatefulSet:
		return appsv1.Resource("statefulsets"), &kit.Writer[*appsv1.StatefulSet]{
			Client: apps.StatefulSets(namespace), New: newObject[appsv1.StatefulSet], Manager: fieldManager,
			Excluded: [][]string{{"spec", "updateStrategy", "rollingUpdate"}},
		}, nil
	case plan.KindVolumeClaim:
		return corev1.Resource("persistentvolumeclaims"), &kit.Writer[*corev1.PersistentVolumeClaim]{
			Client: core.PersistentVolumeClaims(namespace), New: newObject[corev1.PersistentVolumeClaim], Manager: fieldManager, IsPinned: true,
		}, nil
	default:
		return schema.GroupResource{}, nil, fmt.Errorf("no way to write a %s", kind)
	}
}

func newObject[T any]() *T { return new(T) }
