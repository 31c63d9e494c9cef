// SPDX-License-Identifier: Apache-2.0

package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
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
	*kit.View

	foos        kit.Cache[*v1alpha1.Foo]
	deployments kit.Cache[*appsv1.Deployment]
}

// openCaches sets up the informers that the controller reads from, with their
// indexes and handlers.
func (c *Controller) openCaches() error {
	for namespace, factory := range c.config.Owners {
		err := kit.Open(c.caches.View, &c.caches.foos, namespace, factory.Samplecontroller().V1alpha1().Foos().TypedInformer(),
			fooResource(), cache.TypedIndexers[*v1alpha1.Foo]{
				byUID: func(foo *v1alpha1.Foo) ([]string, error) { return []string{string(foo.UID)}, nil },
				byDeploymentName: func(foo *v1alpha1.Foo) ([]string, error) {
					return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
				},
			}, c.onFoo)
		if err != nil {
			return err
		}
	}
	for namespace, factory := range c.config.Children {
		err := kit.Open(c.caches.View, &c.caches.deployments, namespace, factory.Apps().V1().Deployments().TypedInformer(),
			deploymentResource(), cache.TypedIndexers[*appsv1.Deployment]{
				byControllerUID: func(deployment *appsv1.Deployment) ([]string, error) {
					return []string{string(controllerUID(deployment))}, nil
				},
			}, c.onDeployment)
		if err != nil {
			return err
		}
	}
	return nil
}

// onFoo queues a Foo that changed.
func (c *Controller) onFoo(foo *v1alpha1.Foo, change kit.Change) {
	if change.IsDeleted {
		c.unstored.forget(foo.UID)
	}
	c.loop.EnqueueObject(foo, change.CanWait())
}

// onDeployment queues the Foos that a Deployment matters to: the one that
// controls it, by UID, and those that name it, in whose way it may stand. One
// that loses our label managed-by is gone as far as the informer knows; it is
// given here as it last was.
func (c *Controller) onDeployment(deployment *appsv1.Deployment, change kit.Change) {
	if uid := controllerUID(deployment); uid != "" {
		c.enqueueIndexed(byUID, deployment.Namespace, string(uid), change.CanWait())
	}
	c.enqueueIndexed(byDeploymentName, deployment.Namespace, cache.MetaObjectToName(deployment).String(), change.CanWait())
}

func (c *Controller) enqueueIndexed(index, namespace, value string, canWait bool) {
	for _, foo := range c.caches.foos.ByIndex(namespace, index, value) {
		c.loop.EnqueueObject(foo, canWait)
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
