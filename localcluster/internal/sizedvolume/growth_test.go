// SPDX-License-Identifier: Apache-2.0

package sizedvolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/localcluster/internal/volumes"
)

// pair is a volume and its claim, bound, of 64Mi each.
func pair(change func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Annotations: map[string]string{provisionedByAnnotation: Name, volumes.NodeAnnotation: "node-1"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: storage("64Mi"),
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "1"},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1", Resources: corev1.VolumeResourceRequirements{Requests: storage("64Mi")}},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: storage("64Mi"),
			Conditions: []corev1.PersistentVolumeClaimCondition{{Type: "Unused", Status: corev1.ConditionFalse}},
		},
	}
	change(volume, claim)
	return volume, claim
}

func storage(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
}

func unchanged(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {}

// requesting 128Mi is what a user does.
func requesting(_ *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	claim.Spec.Resources.Requests = storage("128Mi")
}

func TestNextStep(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)
		want   step
	}{
		"a volume that has what is requested needs nothing": {unchanged, none},
		"a larger request is grown to":                      {requesting, grow},
		"what was begun is gone on with": {func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			requesting(volume, claim)
			*claim = *resizing(claim, metav1.Now())
		}, grow},
		"a claim that isn't bound yet waits": {func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			requesting(volume, claim)
			claim.Status.Phase = corev1.ClaimPending
		}, none},
		"what the volume has is said on the claim": {func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			requesting(volume, claim)
			volume.Spec.Capacity = storage("128Mi")
		}, finish},
		"where the kubelet said it, the rest is cleared": {func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			requesting(volume, claim)
			*claim = *resizing(claim, metav1.Now())
			volume.Spec.Capacity, claim.Status.Capacity = storage("128Mi"), storage("128Mi")
		}, finish},
		"a request that was lowered again, before the volume grew, is cleared": {func(_ *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			*claim = *resizing(claim, metav1.Now())
		}, finish},
		"a volume that is larger than the request needs nothing": {func(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			volume.Spec.Capacity, claim.Status.Capacity = storage("1Gi"), storage("1Gi")
		}, none},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := nextStep(pair(row.change)); got != row.want {
				t.Errorf("step %d, want %d", got, row.want)
			}
		})
	}
}

func TestResizingKeepsWhatOthersSay(t *testing.T) {
	_, claim := pair(requesting)
	begun := resizing(resizing(claim, metav1.Now()), metav1.Now())
	if !isResizing(begun) || len(begun.Status.Conditions) != 2 || begun.Status.AllocatedResources.Storage().String() != "128Mi" {
		t.Errorf("the status is %+v", begun.Status)
	}
	done := resized(begun, resource.MustParse("128Mi"))
	if isResizing(done) || len(done.Status.Conditions) != 1 || done.Status.Capacity.Storage().String() != "128Mi" {
		t.Errorf("the status is %+v", done.Status)
	}
	if isResizing(claim) || len(claim.Status.Conditions) != 1 {
		t.Errorf("the claim itself was changed: %+v", claim.Status)
	}
}

func TestClaimOf(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)
		want   string
	}{
		"a bound volume has its claim": {unchanged, "shop/data"},
		"another provisioner's has none": {func(volume *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			volume.Annotations[provisionedByAnnotation] = volumes.Name
		}, "/"},
		"another node's has none": {func(volume *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			volume.Annotations[volumes.NodeAnnotation] = "node-2"
		}, "/"},
		"one that is to be removed has none": {func(volume *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			volume.Status.Phase = corev1.VolumeReleased
		}, "/"},
	} {
		t.Run(sentence, func(t *testing.T) {
			volume, _ := pair(row.change)
			namespace, name, ok := claimOf(volume, "node-1")
			if got := namespace + "/" + name; got != row.want || ok != (row.want != "/") {
				t.Errorf("it is %s (%t), want %s", got, ok, row.want)
			}
		})
	}
}
