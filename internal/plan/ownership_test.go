// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
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

// without returns labels without some of them.
func without(labels map[string]string, names ...string) map[string]string {
	for _, name := range names {
		delete(labels, name)
	}
	return labels
}

func TestWhoseAClaimIsThatLostItsLabels(t *testing.T) {
	ours := func(lost ...string) map[string]string {
		return without(retained("redis", "db", "data", string(ourUID)), lost...)
	}
	all := []string{v1alpha1.LabelManagedBy, v1alpha1.LabelOwnerUID, v1alpha1.LabelEngine, v1alpha1.LabelStem, v1alpha1.LabelDataID}
	controlled := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{UID: uid, Controller: new(true)}}
	}
	for sentence, row := range map[string]struct {
		uid    types.UID
		labels map[string]string
		owners []metav1.OwnerReference
		isOurs bool
		former types.UID
		reason string
	}{
		"the one that the topology names is ours without any":         {"held", ours(all...), nil, true, "", ""},
		"it is ours with a wrong engine and stem":                     {"held", retained("mysql", "other", "data", string(ourUID)), nil, true, "", ""},
		"it is ours under the workload":                               {"held", ours(all...), controlled("workload"), true, "", ""},
		"it isn't ours if it is labelled as another's":                {"held", retained("redis", "db", "data", "gone"), nil, false, "gone", ""},
		"it isn't ours if somebody controls it":                       {"held", ours(), controlled("somebody"), false, "", v1alpha1.ReasonConflict},
		"another one is ours by what is left":                         {"other", ours(v1alpha1.LabelManagedBy), nil, true, "", ""},
		"another one isn't ours without owner":                        {"other", ours(v1alpha1.LabelManagedBy, v1alpha1.LabelOwnerUID), nil, false, "", v1alpha1.ReasonConflict},
		"another one isn't ours without engine":                       {"other", ours(v1alpha1.LabelManagedBy, v1alpha1.LabelEngine), nil, false, "", v1alpha1.ReasonConflict},
		"another one isn't ours without stem":                         {"other", ours(v1alpha1.LabelManagedBy, v1alpha1.LabelStem), nil, false, "", v1alpha1.ReasonConflict},
		"another one without any isn't ours":                          {"other", nil, nil, false, "", v1alpha1.ReasonConflict},
		"another one without label isn't adopted from a former owner": {"other", without(retained("redis", "db", "data", "gone"), v1alpha1.LabelManagedBy), nil, false, "", v1alpha1.ReasonConflict},
	} {
		t.Run(sentence, func(t *testing.T) {
			claimant := Claimant{UID: ourUID, Engine: v1alpha1.DatabaseTypeRedis, Stem: "db", DataID: "data", Workload: "workload", Holder: "held"}
			got := claimant.Judge(Child{Ref: Ref{KindVolumeClaim, "data-db-0"}, IsRetained: true},
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: row.uid, Labels: row.labels, OwnerReferences: row.owners}})
			if got.IsOurs != row.isOurs || got.FormerOwner != row.former || reasonOf(got.Problem) != row.reason {
				t.Errorf("got %+v with the problem %v, want %t, %q, %q", got, got.Problem, row.isOurs, row.former, row.reason)
			}
		})
	}
}

func TestOnlyOnesOwnTopologyTellsWhichClaimIsOurs(t *testing.T) {
	b, _ := settledDatabase()
	if got := b.build().Claimant("").Holder; got != theClaim {
		t.Errorf("by its own topology it holds %q, want %q", got, theClaim)
	}
	topology := b.Objects[Ref{KindConfigMap, "db-topology"}]
	topology.GetLabels()[v1alpha1.LabelOwnerUID] = "gone"
	if got := b.build().Claimant("").Holder; got != "" {
		t.Errorf("by a former database's topology it holds %q, want nothing", got)
	}
}

func notStarted(m *Member) { m.Pod.Status.ContainerStatuses = nil }

func TestAClaimThatIsNotSeenIsLookedFor(t *testing.T) {
	unseen := func(changes ...func(*Member)) (*snapshotBuilder, Desired) {
		b, wanted := settledDatabase(changes...)
		delete(b.Objects, Ref{KindVolumeClaim, "data-db-0"})
		return b, wanted
	}
	begun := func(changes ...func(*Member)) (*snapshotBuilder, Desired) {
		b := aDatabase().withMember(changes...)
		wanted := desired(b)
		b.withAll(wanted)
		delete(b.Objects, Ref{KindVolumeClaim, "data-db-0"})
		return b, wanted
	}
	for sentence, row := range map[string]tuneCase{
		"not where it is seen": {func() (*snapshotBuilder, Desired) { return settledDatabase() }, ""},
		"where there are data": {func() (*snapshotBuilder, Desired) { return unseen() }, "look for PersistentVolumeClaim data-db-0"},
		"where there are data, and no pod": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := unseen()
				b.Members = nil
				return b, wanted
			}, "look for PersistentVolumeClaim data-db-0",
		},
		"not of a new database whose pod waits for it": {
			func() (*snapshotBuilder, Desired) { return begun(silent, notStarted) }, "",
		},
		"of a new database whose pod runs on it": {
			func() (*snapshotBuilder, Desired) { return begun(notPromoted) }, "look for PersistentVolumeClaim data-db-0",
		},
		"not while suspended": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := unseen()
				return b.suspended(), wanted
			}, "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b, wanted := row.build()
			plan := Make(b.build(), wanted, nil, noon())
			if got := strings.Join(actionsOf(plan), "; "); got != row.want {
				t.Errorf("the plan is %q, want %q", got, row.want)
			}
		})
	}
}

func TestALabelThatWasTakenOffAClaimIsPutBack(t *testing.T) {
	for _, label := range []string{v1alpha1.LabelOwnerUID, v1alpha1.LabelEngine, v1alpha1.LabelStem} {
		b, wanted := settledDatabase()
		without(b.Objects[Ref{KindVolumeClaim, "data-db-0"}].GetLabels(), label)
		plan := Make(b.build(), wanted, nil, noon())
		want := "apply PersistentVolumeClaim data-db-0: the field metadata.labels." + label + " was changed"
		if got := strings.Join(actionsOf(plan), "; "); got != want || plan.Problem != nil {
			t.Errorf("the plan is %q (%v), want %q", got, plan.Problem, want)
		}
	}
}

func TestTheStemOfAClaim(t *testing.T) {
	for claim, want := range map[string]string{
		ClaimName("db-0"): "db", ClaimName("my-db-10"): "my-db", ClaimName("db-0-1"): "db-0",
		"data-db": "", "data-db-x": "", "data-db-": "", "logs-db-0": "", "data--1": "", "": "",
	} {
		if got := ClaimStem(claim); got != want {
			t.Errorf("the stem of %q is %q, want %q", claim, got, want)
		}
	}
}
