// SPDX-License-Identifier: Apache-2.0

// Command twin serves Foos as the articles' controller does, so that ours can be
// measured beside it: client-go's own limit of 5 requests a second, everything seen
// anew every 30 s, and the status and an event written at every sync.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	appsv1listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/scheme"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
	listers "coolops.cn/database-manager/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	resync  = 30 * time.Second
	workers = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "twin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	set := flag.NewFlagSet("twin", flag.ContinueOnError)
	kubeconfig := set.String("kubeconfig", "", "file that says how the cluster is reached")
	namespace := set.String("namespace", "", "namespace that is watched; default: all")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	resources, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	own := informers.NewSharedInformerFactoryWithOptions(kube, resync, informers.WithNamespace(*namespace))
	foos := externalversions.NewSharedInformerFactoryWithOptions(resources, resync, externalversions.WithNamespace(*namespace))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	c := &controller{
		kube: kube, resources: resources,
		deployments: own.Apps().V1().Deployments().Lister(), foos: foos.Samplecontroller().V1alpha1().Foos().Lister(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "twin"}),
	}
	if err := c.listen(own.Apps().V1().Deployments().Informer(), foos.Samplecontroller().V1alpha1().Foos().Informer()); err != nil {
		return err
	}
	own.StartWithContext(ctx)
	foos.StartWithContext(ctx)
	if err := errors.Join(own.WaitForCacheSyncWithContext(ctx).AsError(), foos.WaitForCacheSyncWithContext(ctx).AsError()); err != nil {
		return err
	}
	c.work(ctx)
	own.Shutdown()
	foos.Shutdown()
	return nil
}

// controller is the articles' loop.
type controller struct {
	kube        kubernetes.Interface
	resources   versioned.Interface
	deployments appsv1listers.DeploymentLister
	foos        listers.FooLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder    record.EventRecorder
}

// listen queues Foos that are seen, and those whose Deployments are.
func (c *controller) listen(deployments, foos cache.SharedIndexInformer) error {
	_, err := foos.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: func(_, object any) { c.enqueue(object) },
	})
	if err != nil {
		return err
	}
	_, err = deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueOwner,
		UpdateFunc: func(before, after any) {
			old, isOld := before.(*appsv1.Deployment)
			deployment, isNew := after.(*appsv1.Deployment)
			if isOld && isNew && old.ResourceVersion != deployment.ResourceVersion {
				c.enqueueOwner(after)
			}
		},
		DeleteFunc: c.enqueueOwner,
	})
	return err
}

func (c *controller) enqueue(object any) {
	if foo, isFoo := object.(*v1alpha1.Foo); isFoo {
		c.queue.Add(cache.MetaObjectToName(foo))
	}
}

func (c *controller) enqueueOwner(object any) {
	if tombstone, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
		object = tombstone.Obj
	}
	deployment, isDeployment := object.(*appsv1.Deployment)
	if !isDeployment {
		return
	}
	if owner := metav1.GetControllerOf(deployment); owner != nil && owner.Kind == "Foo" {
		c.queue.Add(cache.NewObjectName(deployment.Namespace, owner.Name))
	}
}

// work syncs what is queued until the context ends.
func (c *controller) work(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
				continue
			}
		})
	}
	running.Wait()
}

func (c *controller) next(ctx context.Context) bool {
	key, isOver := c.queue.Get()
	if isOver {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		fmt.Fprintln(os.Stderr, "sync", key, err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// sync makes the Deployment, or changes its number of pods, and then says so,
// whether anything has changed or not.
func (c *controller) sync(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || foo.Spec.DeploymentName == "" {
		return err
	}
	own := c.kube.AppsV1().Deployments(key.Namespace)
	deployment, err := c.deployments.Deployments(key.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		deployment, err = own.Create(ctx, render(foo), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, foo) {
		c.recorder.Eventf(foo, corev1.EventTypeWarning, "ErrResourceExists", "Deployment %s exists and isn't this Foo's", deployment.Name)
		return fmt.Errorf("the Deployment %s isn't this Foo's", deployment.Name)
	}
	if foo.Spec.Replicas != nil && *foo.Spec.Replicas != *deployment.Spec.Replicas {
		if deployment, err = own.Update(ctx, render(foo), metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	reported := foo.DeepCopy()
	reported.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	if _, err := c.resources.SamplecontrollerV1alpha1().Foos(key.Namespace).UpdateStatus(ctx, reported, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.recorder.Event(foo, corev1.EventTypeNormal, "Synced", "the Foo was synced")
	return nil
}

// render is the whole Deployment of a Foo.
func render(foo *v1alpha1.Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: foo.Spec.DeploymentName, Namespace: foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, schema.GroupVersionKind{Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo"})},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}
