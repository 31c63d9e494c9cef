// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Reasons of events on a claim, those of external-resizer.
const (
	reasonResizing  = "Resizing"
	reasonFailed    = "VolumeResizeFailed"
	reasonSucceeded = "VolumeResizeSuccessful"
)

// resizer keeps the node's disks mounted, and grows them to what their claims request.
type resizer struct {
	node     string
	client   kubernetes.Interface
	disks    disks
	recorder events.EventRecorder
	// queue has the names of volumes.
	queue workqueue.TypedRateLimitingInterface[string]
}

func newResizer(node string, client kubernetes.Interface, disks disks, recorder events.EventRecorder) *resizer {
	return &resizer{
		node: node, client: client, disks: disks, recorder: recorder,
		queue: workqueue.NewTypedRateLimitingQueue(retries()),
	}
}

// retries is how long what failed waits for its next try.
func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](500*time.Millisecond, time.Minute)
}

// run resizes until ctx ends.
func (r *resizer) run(ctx context.Context) error {
	claims := coreinformers.NewPersistentVolumeClaimInformer(r.client, metav1.NamespaceAll, 0, nil)
	volumes := coreinformers.NewPersistentVolumeInformer(r.client, 0, nil)
	for _, informer := range []cache.SharedIndexInformer{claims, volumes} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: r.enqueue, UpdateFunc: func(_, object any) { r.enqueue(object) },
		}); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
	}
	context.AfterFunc(ctx, r.queue.ShutDown)
	for {
		name, shutdown := r.queue.Get()
		if shutdown {
			return nil
		}
		r.handle(ctx, name)
	}
}

func (r *resizer) enqueue(object any) {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		r.queue.Add(object.Name)
	case *corev1.PersistentVolumeClaim:
		if object.Spec.VolumeName != "" {
			r.queue.Add(object.Spec.VolumeName)
		}
	}
}

func (r *resizer) handle(ctx context.Context, name string) {
	defer r.queue.Done(name)
	if err := r.sync(ctx, name); err != nil {
		klog.ErrorS(err, "Can't resize a volume; it is tried again", "volume", name)
		r.queue.AddRateLimited(name)
		return
	}
	r.queue.Forget(name)
}

// sync takes a volume as far as it can. It asks the API server itself, as what the informers have may be older than
// what it wrote.
func (r *resizer) sync(ctx context.Context, name string) error {
	volume, claim, err := r.observe(ctx, name)
	if err != nil || claim == nil {
		return err
	}
	if err := r.disks.Mount(ctx, name); err != nil {
		return err
	}
	next := nextStep(volume, claim)
	if next == grow {
		if volume, claim, err = r.grow(ctx, volume, claim); err != nil {
			return err
		}
		next = finish
	}
	if next == finish {
		return r.finish(ctx, volume, claim)
	}
	return nil
}

// observe reads a volume of ours and the claim that it is bound to. Without one there is nothing to do.
func (r *resizer) observe(ctx context.Context, name string) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim, error) {
	volume, err := r.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	namespace, claimName, ok := claimOf(volume, r.node)
	if !ok {
		return nil, nil, nil
	}
	claim, err := r.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claimName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != volume.Spec.ClaimRef.UID {
		return nil, nil, nil
	}
	return volume, claim, err
}

// grow says on the claim that its volume is being resized, resizes it, and says so on the volume.
func (r *resizer) grow(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim, error) {
	request := *claim.Spec.Resources.Requests.Storage()
	isNew := !isResizing(claim)
	claim, err := r.updateStatus(ctx, resizing(claim, metav1.Now()))
	if err != nil {
		return nil, nil, err
	}
	if isNew {
		r.recorder.Eventf(claim, volume, corev1.EventTypeNormal, reasonResizing, "Resize", "Growing volume %s to %s", volume.Name, request.String())
	}
	if err := r.disks.Grow(ctx, volume.Name, request.Value()); err != nil {
		r.recorder.Eventf(claim, volume, corev1.EventTypeWarning, reasonFailed, "Resize", "Growing volume %s to %s failed: %v", volume.Name, request.String(), err)
		return nil, nil, fmt.Errorf("grow disk %s: %w", volume.Name, err)
	}
	volume = volume.DeepCopy()
	volume.Spec.Capacity = withStorage(volume.Spec.Capacity, request)
	volume, err = r.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
	return volume, claim, err
}

// finish says on the claim what its volume has. The kubelet, which has nothing to do for a folder, may have said it.
func (r *resizer) finish(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	capacity := *volume.Spec.Capacity.Storage()
	claim, err := r.updateStatus(ctx, resized(claim, capacity))
	if err != nil {
		return err
	}
	klog.InfoS("Volume is resized", "volume", volume.Name, "capacity", capacity.String())
	r.recorder.Eventf(claim, volume, corev1.EventTypeNormal, reasonSucceeded, "Resize", "Volume %s has %s", volume.Name, capacity.String())
	return nil
}

func (r *resizer) updateStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return r.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}
