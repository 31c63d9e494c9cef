// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// The indexes by which cached objects are found: those of one stem together, a
// database by its UID, and databases by the Secret that spec.auth names. Each is
// asked within one namespace.
const (
	byStem        = "stem"
	byUID         = "uid"
	byCredentials = "credentials"
)

// caches are the controller's view of the cluster.
type caches struct {
	*kit.View

	databases   kit.Cache[*v1alpha1.DatabaseManager]
	claims      kit.Cache[*corev1.PersistentVolumeClaim]
	configMaps  kit.Cache[*corev1.ConfigMap]
	credentials kit.Cache[*corev1.Secret]
	deployments kit.Cache[*appsv1.Deployment]

	disruptionBudgets kit.Cache[*policyv1.PodDisruptionBudget]

	networkPolicies kit.Cache[*networkingv1.NetworkPolicy]
	pods            kit.Cache[*corev1.Pod]
	replicaSets     kit.Cache[*appsv1.ReplicaSet]
	secrets         kit.Cache[*corev1.Secret]
	services        kit.Cache[*corev1.Service]
	statefulSets    kit.Cache[*appsv1.StatefulSet]
}

// openCaches sets up the informers that the controller reads from, with their
// indexes and handlers.
func (c *Controller) openCaches() error {
	for namespace, factory := range c.config.Owners {
		if err := c.openDatabases(namespace, factory); err != nil {
			return err
		}
	}
	for namespace, factory := range c.config.Children {
		if err := c.openChildren(namespace, factory); err != nil {
			return err
		}
	}
	for namespace, factory := range c.config.Pods {
		if err := open(c, &c.caches.pods, namespace, factory.Core().V1().Pods().TypedInformer(), corev1.Resource("pods"), childHandler[*corev1.Pod](c)); err != nil {
			return err
		}
	}
	for namespace, factory := range c.config.Credentials {
		// The caches of a type are told apart by their resource, and this is the
		// second one of Secrets: nothing of ours is written to it.
		if err := kit.Open(c.caches.View, &c.caches.credentials, namespace, factory.Core().V1().Secrets().TypedInformer(),
			corev1.Resource("secrets/credentials"), nil, c.onCredentials); err != nil {
			return err
		}
	}
	return nil
}

// openDatabases sets up the informer of the resource itself.
func (c *Controller) openDatabases(namespace string, factory externalversions.SharedInformerFactory) error {
	return kit.Open(c.caches.View, &c.caches.databases, namespace, factory.Coolops().V1alpha1().DatabaseManagers().TypedInformer(),
		databaseResource(), cache.TypedIndexers[*v1alpha1.DatabaseManager]{
			byStem: func(database *v1alpha1.DatabaseManager) ([]string, error) {
				return []string{stemKey(database.Namespace, database.Spec.DeploymentName)}, nil
			},
			byCredentials: func(database *v1alpha1.DatabaseManager) ([]string, error) {
				if database.Spec.Auth == nil {
					return nil, nil
				}
				return []string{database.Spec.Auth.SecretName}, nil
			},
			byUID: func(database *v1alpha1.DatabaseManager) ([]string, error) { return []string{string(database.UID)}, nil },
		}, c.onDatabase)
}

// openChildren sets up the informers of what databases consist of.
func (c *Controller) openChildren(namespace string, factory informers.SharedInformerFactory) error {
	core, apps := factory.Core().V1(), factory.Apps().V1()
	return errors.Join(
		kit.Open(c.caches.View, &c.caches.claims, namespace, core.PersistentVolumeClaims().TypedInformer(), corev1.Resource("persistentvolumeclaims"),
			cache.TypedIndexers[*corev1.PersistentVolumeClaim]{byStem: func(claim *corev1.PersistentVolumeClaim) ([]string, error) { return claimStems(claim), nil }}, c.onClaim),
		open(c, &c.caches.configMaps, namespace, core.ConfigMaps().TypedInformer(), corev1.Resource("configmaps"), c.onConfigMap),
		open(c, &c.caches.deployments, namespace, apps.Deployments().TypedInformer(), appsv1.Resource("deployments"), childHandler[*appsv1.Deployment](c)),
		open(c, &c.caches.disruptionBudgets, namespace, factory.Policy().V1().PodDisruptionBudgets().TypedInformer(), policyv1.Resource("poddisruptionbudgets"), childHandler[*policyv1.PodDisruptionBudget](c)),
		open(c, &c.caches.networkPolicies, namespace, factory.Networking().V1().NetworkPolicies().TypedInformer(), networkingv1.Resource("networkpolicies"), childHandler[*networkingv1.NetworkPolicy](c)),
		open(c, &c.caches.replicaSets, namespace, apps.ReplicaSets().TypedInformer(), appsv1.Resource("replicasets"), childHandler[*appsv1.ReplicaSet](c)),
		open(c, &c.caches.secrets, namespace, core.Secrets().TypedInformer(), corev1.Resource("secrets"), c.onSecret),
		open(c, &c.caches.services, namespace, core.Services().TypedInformer(), corev1.Resource("services"), childHandler[*corev1.Service](c)),
		open(c, &c.caches.statefulSets, namespace, apps.StatefulSets().TypedInformer(), appsv1.Resource("statefulsets"), childHandler[*appsv1.StatefulSet](c)),
	)
}

// open sets up the informer of one type of child.
func open[T kit.Object](c *Controller, into *kit.Cache[T], namespace string, informer cache.TypedSharedIndexInformer[T], resource schema.GroupResource, notify func(T, kit.Change)) error {
	return kit.Open(c.caches.View, into, namespace, informer, resource, cache.TypedIndexers[T]{byStem: func(child T) ([]string, error) {
		return []string{stemKey(child.GetNamespace(), child.GetLabels()[v1alpha1.LabelStem])}, nil
	}}, notify)
}

// claimStems are those of a claim's label and, if it is another, of its name: it is
// where the data are, and its labels may have been changed by hand.
func claimStems(claim *corev1.PersistentVolumeClaim) []string {
	stems := []string{stemKey(claim.Namespace, claim.Labels[v1alpha1.LabelStem])}
	if stem := plan.ClaimStem(claim.Name); stem != "" && stem != claim.Labels[v1alpha1.LabelStem] {
		stems = append(stems, stemKey(claim.Namespace, stem))
	}
	return stems
}

// childHandler is the handler of a type about which nothing is remembered.
func childHandler[T kit.Object](c *Controller) func(T, kit.Change) {
	return func(child T, change kit.Change) { c.onChild(child, change) }
}

func stemKey(namespace, stem string) string { return namespace + "/" + stem }

func databaseResource() schema.GroupResource { return v1alpha1.Resource("databasemanagers") }
