// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	listers "coolops.cn/database-manager/pkg/generated/listers/coolops/v1alpha1"
)

// The indexes by which cached objects are found: those of one stem together,
// and a database by its UID.
const (
	byStem = "stem"
	byUID  = "uid"
)

// caches are the controller's view of the cluster.
type caches struct {
	databaseLister listers.DatabaseManagerLister
	databases      cache.TypedIndexer[*v1alpha1.DatabaseManager]

	claims       cache.TypedIndexer[*corev1.PersistentVolumeClaim]
	configMaps   cache.TypedIndexer[*corev1.ConfigMap]
	deployments  cache.TypedIndexer[*appsv1.Deployment]
	pods         cache.TypedIndexer[*corev1.Pod]
	replicaSets  cache.TypedIndexer[*appsv1.ReplicaSet]
	secrets      cache.TypedIndexer[*corev1.Secret]
	services     cache.TypedIndexer[*corev1.Service]
	statefulSets cache.TypedIndexer[*appsv1.StatefulSet]
}

// openCaches sets up the informers that the controller reads from, with their
// indexes and handlers.
func (c *Controller) openCaches() error {
	core, apps := c.config.Children.Core().V1(), c.config.Children.Apps().V1()
	return errors.Join(
		c.openDatabases(),
		open(c, &c.caches.claims, core.PersistentVolumeClaims().TypedInformer(), corev1.Resource("persistentvolumeclaims"), childHandler[*corev1.PersistentVolumeClaim](c)),
		open(c, &c.caches.configMaps, core.ConfigMaps().TypedInformer(), corev1.Resource("configmaps"), childHandler[*corev1.ConfigMap](c)),
		open(c, &c.caches.deployments, apps.Deployments().TypedInformer(), appsv1.Resource("deployments"), childHandler[*appsv1.Deployment](c)),
		open(c, &c.caches.pods, core.Pods().TypedInformer(), corev1.Resource("pods"), childHandler[*corev1.Pod](c)),
		open(c, &c.caches.replicaSets, apps.ReplicaSets().TypedInformer(), appsv1.Resource("replicasets"), childHandler[*appsv1.ReplicaSet](c)),
		open(c, &c.caches.secrets, core.Secrets().TypedInformer(), corev1.Resource("secrets"), c.onSecret),
		open(c, &c.caches.services, core.Services().TypedInformer(), corev1.Resource("services"), childHandler[*corev1.Service](c)),
		open(c, &c.caches.statefulSets, apps.StatefulSets().TypedInformer(), appsv1.Resource("statefulsets"), childHandler[*appsv1.StatefulSet](c)),
	)
}

// openDatabases sets up the informer of the resource itself.
func (c *Controller) openDatabases() error {
	databases := c.config.Owners.Coolops().V1alpha1().DatabaseManagers()
	informer := databases.TypedInformer()
	err := informer.AddTypedIndexers(cache.TypedIndexers[*v1alpha1.DatabaseManager]{
		byStem: func(database *v1alpha1.DatabaseManager) ([]string, error) {
			return []string{stemKey(database.Namespace, database.Spec.DeploymentName)}, nil
		},
		byUID: func(database *v1alpha1.DatabaseManager) ([]string, error) { return []string{string(database.UID)}, nil },
	})
	if err != nil {
		return fmt.Errorf("index databases: %w", err)
	}
	c.caches.databaseLister, c.caches.databases = databases.Lister(), informer.GetTypedIndexer()
	c.ownWrites.Watch(databaseResource(), metav1.NamespaceAll, informer.GetStore())
	registration, err := kit.OnChange(informer, c.onDatabase)
	if err != nil {
		return err
	}
	c.handlers = append(c.handlers, registration)
	return nil
}

// open sets up the informer of one type of child.
func open[T kit.Object](c *Controller, indexer *cache.TypedIndexer[T], informer cache.TypedSharedIndexInformer[T], resource schema.GroupResource, notify func(T, bool)) error {
	err := informer.AddTypedIndexers(cache.TypedIndexers[T]{byStem: func(child T) ([]string, error) {
		return []string{stemKey(child.GetNamespace(), child.GetLabels()[v1alpha1.LabelStem])}, nil
	}})
	if err != nil {
		return fmt.Errorf("index %s: %w", resource, err)
	}
	*indexer = informer.GetTypedIndexer()
	c.ownWrites.Watch(resource, metav1.NamespaceAll, informer.GetStore())
	registration, err := kit.OnChange(informer, notify)
	if err != nil {
		return err
	}
	c.handlers = append(c.handlers, registration)
	return nil
}

// childHandler is the handler of a type about which nothing is remembered.
func childHandler[T kit.Object](c *Controller) func(T, bool) {
	return func(child T, _ bool) { c.onChild(child) }
}

func stemKey(namespace, stem string) string { return namespace + "/" + stem }

func databaseResource() schema.GroupResource { return v1alpha1.Resource("databasemanagers") }
