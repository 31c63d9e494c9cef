// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestWhoseAnObjectIs(t *testing.T) {
	controlledBy := func(uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DatabaseManager", Name: "orders", UID: uid, Controller: new(true)}}}
	}
	labelled := func(labels map[string]string) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: labels} }
	for sentence, row := range map[string]struct {
		isRetained bool
		object     metav1.ObjectMeta
		isOurs     bool
		former     types.UID
		reason     string
	}{
		"what we control is ours":                             {false, controlledBy(ourUID), true, "", ""},
		"a controller of our name and another UID is another": {false, controlledBy(anotherUID), false, "", v1alpha1.ReasonConflict},
		"what nobody controls isn't ours":                     {false, metav1.ObjectMeta{}, false, "", v1alpha1.ReasonConflict},
		"an owner that isn't the controller doesn't count": {
			false,
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: ourUID}}},
			false, "", v1alpha1.ReasonConflict,
		},
		"labels make nothing ours that should have a controller":   {false, labelled(retained("redis", "db", "data", string(ourUID))), false, "", v1alpha1.ReasonConflict},
		"what stays is ours by its owner-uid":                      {true, labelled(retained("redis", "db", "data", string(ourUID))), true, "", ""},
		"what is ours is ours whatever data set it names":          {true, labelled(retained("redis", "db", "other", string(ourUID))), true, "", ""},
		"what is ours is ours before it names a data set":          {true, labelled(retained("redis", "db", "", string(ourUID))), true, "", ""},
		"what stays can be adopted from another UID":               {true, labelled(retained("redis", "db", "data", "gone")), false, "gone", ""},
		"what stays isn't ours without our label":                  {true, labelled(map[string]string{v1alpha1.LabelOwnerUID: string(ourUID)}), false, "", v1alpha1.ReasonConflict},
		"what stays isn't ours if somebody controls it":            {true, controlledBy(anotherUID), false, "", v1alpha1.ReasonConflict},
		"what stays isn't adopted by another engine":               {true, labelled(retained("mysql", "db", "data", "gone")), false, "", v1alpha1.ReasonRetainedDataMismatch},
		"what stays isn't adopted by another stem":                 {true, labelled(retained("redis", "other", "data", "gone")), false, "", v1alpha1.ReasonRetainedDataMismatch},
		"what stays isn't adopted into another data set":           {true, labelled(retained("redis", "db", "other", "gone")), false, "", v1alpha1.ReasonRetainedDataMismatch},
		"what stays isn't adopted without a data set":              {true, labelled(retained("redis", "db", "", "gone")), false, "", v1alpha1.ReasonRetainedDataMismatch},
		"what stays isn't adopted from a database that still runs": {true, labelled(retained("redis", "db", "data", string(anotherUID))), false, "", v1alpha1.ReasonConflict},
	} {
		t.Run(sentence, func(t *testing.T) {
			claimant := Claimant{
				UID: ourUID, Name: "orders", Engine: v1alpha1.DatabaseTypeRedis, Stem: "db", DataID: "data",
				Siblings: map[types.UID]string{},
			}
			if row.former == "" && row.reason == v1alpha1.ReasonConflict {
				claimant.Siblings[anotherUID] = "another"
			}
			got := claimant.Judge(Child{Ref: Ref{KindSecret, "db-auth"}, IsRetained: row.isRetained}, &corev1.Secret{ObjectMeta: row.object})
			if got.IsOurs != row.isOurs || got.FormerOwner != row.former || reasonOf(got.Problem) != row.reason {
				t.Errorf("got %+v with the problem %v, want %t, %q, %q", got, got.Problem, row.isOurs, row.former, row.reason)
			}
		})
	}
}

func TestAClaimThatWasNeverUsedIsAdoptedWithoutADataSet(t *testing.T) {
	claimant := Claimant{UID: ourUID, Engine: v1alpha1.DatabaseTypeRedis, Stem: "db", DataID: "data"}
	child := Child{Ref: Ref{KindVolumeClaim, "data-db-0"}, IsRetained: true}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: retained("redis", "db", "", "gone")}}
	if got := claimant.Judge(child, claim); got.FormerOwner != "gone" || got.Problem != nil {
		t.Errorf("got %+v, want that it can be adopted", got)
	}
	claim.Annotations = map[string]string{v1alpha1.AnnotationInitialized: "another"}
	if got := claimant.Judge(child, claim); reasonOf(got.Problem) != v1alpha1.ReasonRetainedDataMismatch {
		t.Errorf("with a mark, got %+v, want a mismatch", got)
	}
}
