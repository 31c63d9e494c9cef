// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"coolops.cn/database-manager/localcluster/internal/volumes"
)

func request(size string) controller.ProvisionOptions {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = storage(size)
	return controller.ProvisionOptions{
		StorageClass: &storagev1.StorageClass{ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete)},
		PVName:       "pv-2", PVC: claim, SelectedNodeName: "node-1",
	}
}

func TestVolumesAreAsLargeAsTheirDisks(t *testing.T) {
	for sentence, row := range map[string]struct {
		request, want string
		size          int64
	}{
		"a disk has what is requested":            {"64Mi", "64Mi", 64 << 20},
		"also where that is no multiple of a MiB": {"67108865", "67108865", 64<<20 + 1},
		"no disk is smaller than a file system":   {"1Mi", "16Mi", 16 << 20},
	} {
		t.Run(sentence, func(t *testing.T) {
			disks := newDisks()
			volume, state, err := (&provisioner{"node-1", disks}).Provision(t.Context(), request(row.request))
			if err != nil || state != controller.ProvisioningFinished {
				t.Fatalf("%v, %v", state, err)
			}
			if got := volume.Spec.Capacity.Storage().String(); got != row.want || disks.sizes["pv-2"] != row.size {
				t.Errorf("capacity is %s and the disk has %d, want %s and %d", got, disks.sizes["pv-2"], row.want, row.size)
			}
			if volume.Spec.Local == nil || volume.Spec.Local.Path != disks.DataPath("pv-2") {
				t.Errorf("source is %+v: only for local volumes the kubelet applies fsGroup", volume.Spec.PersistentVolumeSource)
			}
			if terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms; terms[0].MatchExpressions[0].Values[0] != "node-1" {
				t.Errorf("it may be used on %+v", terms)
			}
		})
	}
}

func TestADiskThatCantBeMadeLeavesNothing(t *testing.T) {
	disks, refused := newDisks(), errors.New("this machine has no loop devices")
	disks.sizes["pv-2"] = 1 // half made
	disks.refuse = func() error { return refused }
	volume, state, err := (&provisioner{"node-1", disks}).Provision(t.Context(), request("64Mi"))
	// The error is the note of the event that the claim gets.
	if volume != nil || state != controller.ProvisioningFinished || err == nil || err.Error() != refused.Error() {
		t.Errorf("%v, %v, %v", volume, state, err)
	}
	if _, isThere := disks.sizes["pv-2"]; isThere {
		t.Error("it is still there")
	}
}

func TestEachNodeHasItsOwnDisks(t *testing.T) {
	p := &provisioner{node: "node-1", disks: newDisks()}
	for node, ours := range map[string]bool{"node-1": true, "node-2": false, "": false} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{selectedNodeAnnotation: node}}}
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{volumes.NodeAnnotation: node}}}
		if p.ShouldProvision(t.Context(), claim) != ours || p.ShouldDelete(t.Context(), volume) != ours {
			t.Errorf("of node %q it is %t", node, !ours)
		}
	}
}

func TestADeletedVolumesDiskGoes(t *testing.T) {
	disks := newDisks()
	volume, _ := pair(unchanged)
	if err := (&provisioner{"node-1", disks}).Delete(t.Context(), volume); err != nil || len(disks.sizes) > 0 {
		t.Errorf("left are %v (%v)", disks.sizes, err)
	}
}
