// SPDX-License-Identifier: Apache-2.0

package player

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storageClass is the class of the volumes that are played, and the default.
const storageClass = "played"

// offerVolumes makes the class.
func (p *Player) offerVolumes() error {
	_, err := p.kube.StorageV1().StorageClasses().Create(p.ctx, &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:          "played.coolops.cn",
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimRetain),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the storage class %s: %w", storageClass, err)
	}
	return nil
}

// seeClaim gives a claim a volume, or has the one that it has grow.
func (p *Player) seeClaim(object any, isGone bool) {
	claim, isClaim := object.(*corev1.PersistentVolumeClaim)
	if !isClaim || isGone || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != storageClass {
		return
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	name := "played-" + string(claim.UID)
	switch {
	case claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil:
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: wanted}, AccessModes: claim.Spec.AccessModes, StorageClassName: storageClass,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				// It is never looked at.
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/played"}},
				ClaimRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				},
			},
		}
		// What fails is seen with the claim's next change, or in the test.
		_, _ = p.kube.CoreV1().PersistentVolumes().Create(p.ctx, volume, metav1.CreateOptions{})
	case claim.Status.Phase == corev1.ClaimBound && claim.Status.Capacity.Storage().Cmp(wanted) < 0:
		p.wait.Go(func() { p.grow(claim, name) })
	}
}

// grow does what a resizer does: first the volume, then the claim.
func (p *Player) grow(claim *corev1.PersistentVolumeClaim, name string) {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	volume, err := p.kube.CoreV1().PersistentVolumes().Get(p.ctx, name, metav1.GetOptions{})
	if err != nil {
		return // it is seen again
	}
	volume.Spec.Capacity[corev1.ResourceStorage] = wanted
	if _, err := p.kube.CoreV1().PersistentVolumes().Update(p.ctx, volume, metav1.UpdateOptions{}); err != nil {
		return
	}
	grown := claim.DeepCopy()
	grown.Status.Capacity[corev1.ResourceStorage] = wanted
	_, _ = p.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(p.ctx, grown, metav1.UpdateOptions{})
}

// seeVolume takes away a volume whose claim is gone.
func (p *Player) seeVolume(object any, isGone bool) {
	volume, isVolume := object.(*corev1.PersistentVolume)
	if isVolume && !isGone && volume.Spec.StorageClassName == storageClass && volume.Status.Phase == corev1.VolumeReleased {
		_ = p.kube.CoreV1().PersistentVolumes().Delete(p.ctx, volume.Name, metav1.DeleteOptions{})
	}
}
