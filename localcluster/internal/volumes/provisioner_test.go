// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func request(node string) controller.ProvisionOptions {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return controller.ProvisionOptions{
		StorageClass: &storagev1.StorageClass{ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete)},
		PVName:       "pv-1", PVC: claim, SelectedNodeName: node,
	}
}

func TestProvisionMakesAFolderForTheGroupOfThePod(t *testing.T) {
	dir := t.TempDir()
	volume, state, err := (&provisioner{dir}).Provision(t.Context(), request("node-1"))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("%v, %v", state, err)
	}
	info, err := os.Stat(filepath.Join(dir, "node-1", "pv-1"))
	if err != nil {
		t.Fatal(err)
	}
	// Nobody else may look in; files made in it belong to its group, which the kubelet sets to the pod's fsGroup.
	if want := os.ModeDir | os.ModeSetgid | 0o770; info.Mode() != want {
		t.Errorf("mode is %s, want %s", info.Mode(), want)
	}
	if volume.Spec.Local == nil || volume.Spec.Local.Path != "/volumes/pv-1" {
		t.Errorf("source is %+v: only for local volumes the kubelet applies fsGroup", volume.Spec.PersistentVolumeSource)
	}
	terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchExpressions[0].Values[0] != "node-1" {
		t.Errorf("it may be used on %+v", terms)
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.String() != "1Gi" {
		t.Errorf("capacity is %s", size.String())
	}
}

func TestProvisionRefusesWithoutANode(t *testing.T) {
	dir := t.TempDir()
	volume, state, err := (&provisioner{dir}).Provision(t.Context(), request(""))
	if err == nil || volume != nil || state != controller.ProvisioningFinished {
		t.Errorf("%v, %v, %v", volume, state, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it made %v (%v)", entries, err)
	}
}

func TestDelete(t *testing.T) {
	for sentence, row := range map[string]struct {
		annotations map[string]string
		removed     bool
	}{
		"the folder on the volume's node goes":      {map[string]string{NodeAnnotation: "node-1"}, true},
		"nothing goes without a node":               {nil, false},
		"nothing goes outside of the nodes' folder": {map[string]string{NodeAnnotation: "../node-1"}, false},
		"a parent is no node":                       {map[string]string{NodeAnnotation: ".."}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "node-1", "pv-1")
			if err := os.MkdirAll(filepath.Join(folder, "data"), 0o755); err != nil {
				t.Fatal(err)
			}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Annotations: row.annotations}}
			if err := (&provisioner{dir}).Delete(t.Context(), volume); (err == nil) != row.removed {
				t.Errorf("error is %v", err)
			}
			if _, err := os.Stat(folder); (err != nil) != row.removed {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}
