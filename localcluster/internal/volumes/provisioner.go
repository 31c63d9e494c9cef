// SPDX-License-Identifier: Apache-2.0

// Package volumes makes local volumes on demand: a folder of the node that the scheduler chose, offered as a
// PersistentVolume of type local, so that the kubelet gives it the pod's fsGroup.
package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// Name is the provisioner's name, as StorageClasses refer to it.
	Name = "localcluster.coolops.cn/local-volume"
	// NodePath is where a node sees its volumes.
	NodePath = "/volumes"
	// NodeAnnotation records on a volume the node that it lies on.
	NodeAnnotation = "localcluster.coolops.cn/node"
)

// Run provisions and deletes volumes below dir, in one folder a node, until ctx ends.
func Run(ctx context.Context, client kubernetes.Interface, dir string) {
	controller.NewProvisionController(ctx, client, Name, &provisioner{dir: dir},
		controller.LeaderElection(false),
		controller.MetricsPort(0),
	).Run(ctx)
}

type provisioner struct{ dir string }

// Provision makes the folder and describes it. Without a chosen node there is nothing to make it on: the
// StorageClass must bind on first consumer.
func (p *provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	node := options.SelectedNodeName
	if node == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("no node was chosen for %s: the storage class must have volumeBindingMode WaitForFirstConsumer", options.PVName)
	}
	if err := makeFolder(filepath.Join(p.dir, node, options.PVName)); err != nil {
		return nil, controller.ProvisioningNoChange, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName, Annotations: map[string]string{NodeAnnotation: node}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: filepath.Join(NodePath, options.PVName)}},
			NodeAffinity:                  OnNode(node),
		},
	}, controller.ProvisioningFinished, nil
}

// makeFolder makes a folder that only its group, which the kubelet sets to the pod's fsGroup, can enter.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o770); err != nil {
		return err
	}
	return os.Chmod(path, 0o770|os.ModeSetgid)
}

// OnNode keeps a volume's pods on its node.
func OnNode(node string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}},
	}}}}
}

// Delete removes the folder with all that is in it.
func (p *provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	node := volume.Annotations[NodeAnnotation]
	if len(validation.IsDNS1123Subdomain(node)) > 0 {
		return fmt.Errorf("volume %s has no valid annotation %s: its folder is unknown", volume.Name, NodeAnnotation)
	}
	return os.RemoveAll(filepath.Join(p.dir, node, volume.Name))
}
