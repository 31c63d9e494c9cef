// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"coolops.cn/database-manager/localcluster/internal/disk"
	"coolops.cn/database-manager/localcluster/internal/volumes"
)

// selectedNodeAnnotation is where the scheduler says on a claim which node its volume is to be on.
const selectedNodeAnnotation = "volume.kubernetes.io/selected-node"

// provisioner makes and removes the disks of one node.
type provisioner struct {
	node  string
	disks disks
}

// ShouldProvision leaves claims to the node that their pod was given.
func (p *provisioner) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[selectedNodeAnnotation] == p.node
}

// ShouldDelete leaves volumes to the node that they are on.
func (p *provisioner) ShouldDelete(_ context.Context, volume *corev1.PersistentVolume) bool {
	return volume.Annotations[volumes.NodeAnnotation] == p.node
}

// Provision makes the disk and describes it. Where it fails there is no disk: the claim may be gone before the next try.
func (p *provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	size := max(options.PVC.Spec.Resources.Requests.Storage().Value(), disk.MinSize)
	if err := p.disks.Make(ctx, options.PVName, size); err != nil {
		return nil, controller.ProvisioningFinished, errors.Join(err, p.disks.Remove(ctx, options.PVName))
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName, Annotations: map[string]string{volumes.NodeAnnotation: p.node}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: p.disks.DataPath(options.PVName)}},
			NodeAffinity:                  volumes.OnNode(p.node),
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the disk with all that is on it.
func (p *provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	return p.disks.Remove(ctx, volume.Name)
}
