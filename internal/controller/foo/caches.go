// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	listers "coolops.cn/database-manager/pkg/generated/listers/samplecontroller/v1alpha1"
)

// The indexes by which cached objects are found: a Foo by its UID, and by the
// Deployment that it names; a Deployment by the UID of its controller.
const (
	byUID            = "uid"
	byDeploymentName = "deploymentName"
	byControllerUID  = "controllerUID"
)

// caches are the controller's view of the cluster.
type caches struct {
	fooLister        listers.FooLister
	foos             cache.TypedIndexer[*v1alpha1.Foo]
	deploymentLister appsv1listers.DeploymentLister
	deployments      cache.TypedIndexer[*appsv1.Deployment]
}

// openCaches sets up the informers that the controller reads from, with their
// indexes and handlers.
func (c *Controller) openCaches() error {
	foos := c.config.Owners.Samplecontroller().V1alpha1().Foos()
	deployments := c.config.Children.Apps().V1().Deployments()
	c.caches.fooLister, c.caches.deploymentLister = foos.Lister(), deployments.Lister()
	err := open(c, &c.caches.foos, foos.TypedInformer(), fooResource(), c.onFoo, cache.TypedIndexers[*v1alpha1.Foo]{
		byUID: func(foo *v1alpha1.Foo) ([]string, error) { return []string{string(foo.UID)}, nil },
		byDeploymentName: func(foo *v1alpha1.Foo) ([]string, error) {
			return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
		},
	})
	if err != nil {
		return err
	}
	return open(c, &c.caches.deployments, deployments.TypedInformer(), deploymentResource(), c.onDeployment, cache.TypedIndexers[*appsv1.Deployment]{
		byControllerUID: func(deployment *appsv1.Deployment) ([]string, error) {
			return []string{string(controllerUID(deployment))}, nil
		},
	})
}

// open sets up the informer of one type.
func open[T kit.Object](c *Controller, indexer *cache.TypedIndexer[T], informer cache.TypedSharedIndexInformer[T],
	resource schema.GroupResource, notify func(T, bool), indexers cache.TypedIndexers[T],
) error {
	if err := informer.AddTypedIndexers(indexers); err != nil {
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

// onFoo queues a Foo that changed.
func (c *Controller) onFoo(foo *v1alpha1.Foo, isDeleted bool) {
	if isDeleted {
		c.unstored.forget(foo.UID)
	}
	c.loop.Enqueue(cache.MetaObjectToName(foo))
}

// onDeployment queues the Foos that a Deployment matters to: the one that
// controls it, by UID, and those that name it, in whose way it may stand. One
// that loses our label managed-by is gone as far as the informer knows; it is
// given here as it last was.
func (c *Controller) onDeployment(deployment *appsv1.Deployment, _ bool) {
	if uid := controllerUID(deployment); uid != "" {
		c.enqueueIndexed(byUID, string(uid))
	}
	c.enqueueIndexed(byDeploymentName, cache.MetaObjectToName(deployment).String())
}

func (c *Controller) enqueueIndexed(index, value string) {
	foos, err := c.caches.foos.ByTypedIndex(index, value)
	if err != nil {
		// Only an index that doesn't exist gives an error.
		panic(err)
	}
	for _, foo := range foos {
		c.loop.Enqueue(cache.MetaObjectToName(foo))
	}
}

// controllerUID returns the UID of what controls object; "" if nothing does.
func controllerUID(object metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return controller.UID
	}
	return ""
}

func fooResource() schema.GroupResource { return v1alpha1.Resource("foos") }

func deploymentResource() schema.GroupResource { return appsv1.Resource("deployments") }
