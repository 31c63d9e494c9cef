// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// settledDatabase is a database with everything in place, and what it is to be.
func settledDatabase(changes ...func(*Member)) (*snapshotBuilder, Desired) {
	b := aDatabase().withMember(changes...)
	wanted := desired(b)
	wanted.setTopology(true, settled(b))
	wanted.Live = Settings{"maxmemory": "0", "timeout": "0"}
	b.withAll(wanted)
	return b, wanted
}

func hasSettings(text string) func(*Member) {
	return func(m *Member) { m.Probe.Settings = ParseSettings(text) }
}

func hasPassword(state PasswordState) func(*Member) {
	return func(m *Member) { m.Probe.Engine.Password = state }
}

// withClaim sets what the claim asks for, and what it has.
func (b *snapshotBuilder) withClaim(requested, capacity string, changes ...func(*corev1.PersistentVolumeClaim)) *snapshotBuilder {
	claim, _ := b.Objects[Ref{KindVolumeClaim, "data-db-0"}].(*corev1.PersistentVolumeClaim)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requested)}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	for _, change := range changes {
		change(claim)
	}
	return b
}

// withTemplateSize sets the size of the claims that the StatefulSet makes.
func (b *snapshotBuilder) withTemplateSize(size string) *snapshotBuilder {
	statefulSet, _ := b.Objects[Ref{KindStatefulSet, "db"}].(*appsv1.StatefulSet)
	statefulSet.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: DataVolume},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		}},
	}}
	return b
}

func unbound(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimPending }

func ownedByWorkload(claim *corev1.PersistentVolumeClaim) {
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "uid-of-StatefulSet db"}}
}

// tuneCase is a database, and what is planned for it.
type tuneCase struct {
	build func() (*snapshotBuilder, Desired)
	want  string
}

func TestARunningServerIsTuned(t *testing.T) {
	const same = "maxmemory=0\ntimeout=0\n"
	for sentence, row := range map[string]tuneCase{
		"not where it has what it should": {func() (*snapshotBuilder, Desired) {
			return settledDatabase(hasSettings(same), hasPassword(PasswordSet))
		}, ""},
		"in what differs alone": {
			func() (*snapshotBuilder, Desired) { return settledDatabase(hasSettings("maxmemory=0\ntimeout=7\n")) }, "set timeout in Pod db-0",
		},
		"in what it doesn't name": {
			func() (*snapshotBuilder, Desired) { return settledDatabase(hasSettings("timeout=0\n")) }, "set maxmemory in Pod db-0",
		},
		"not while nobody knows what it has": {func() (*snapshotBuilder, Desired) { return settledDatabase() }, ""},
		"not while it is silent": {
			func() (*snapshotBuilder, Desired) { return settledDatabase(hasSettings("timeout=7\n"), silent) }, "",
		},
		"with the application's password": {
			func() (*snapshotBuilder, Desired) { return settledDatabase(hasPassword(PasswordDiffers)) }, "set the application's password in Pod db-0",
		},
		"with no password that is silent": {
			func() (*snapshotBuilder, Desired) { return settledDatabase(hasPassword(PasswordDiffers), silent) }, "",
		},
		"with no password while its Secret is lost": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase(hasPassword(PasswordDiffers))
				delete(b.Objects, Ref{KindSecret, "db-auth"})
				return b, wanted
			}, "create Secret db-auth",
		},
		"in nothing under spec.suspend": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase(hasPassword(PasswordDiffers), hasSettings("timeout=7\n"))
				delete(b.Objects, Ref{KindService, "db"})
				b.Database.Spec.Suspend = true
				return b.withClaim("512Mi", "512Mi"), wanted
			}, "",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func TestAVolumeGrows(t *testing.T) {
	for sentence, row := range map[string]tuneCase{
		"where more is wanted": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("512Mi", "512Mi"), wanted
			}, "grow PersistentVolumeClaim data-db-0 to 1Gi",
		},
		"where more is wanted, while it is silent": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase(silent)
				return b.withClaim("512Mi", "512Mi"), wanted
			}, "grow PersistentVolumeClaim data-db-0 to 1Gi",
		},
		"not one that is there already": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("1024Mi", "512Mi"), wanted
			}, "",
		},
		"not one that isn't bound": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("512Mi", "512Mi", unbound), wanted
			}, "",
		},
		"never to a smaller size": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("2Gi", "2Gi"), wanted
			}, "",
		},
		"by another StatefulSet, where that makes other claims": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("1Gi", "1Gi").withTemplateSize("512Mi"), wanted
			}, "replace StatefulSet db without its pods: its claims are of 512Mi, wanted are 1Gi",
		},
		"by no other StatefulSet before the claims have grown": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("512Mi", "512Mi").withTemplateSize("512Mi"), wanted
			}, "grow PersistentVolumeClaim data-db-0 to 1Gi",
		},
		"by no other StatefulSet where the claims go with it": {
			func() (*snapshotBuilder, Desired) {
				b, wanted := settledDatabase()
				return b.withClaim("1Gi", "1Gi", ownedByWorkload).withTemplateSize("512Mi"), wanted
			}, "",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func (c tuneCase) check(t *testing.T) {
	b, wanted := c.build()
	todo := Make(b.build(), wanted, nil, noon())
	var got []string
	for _, action := range todo.Actions {
		got = append(got, action.String())
	}
	if strings.Join(got, "; ") != c.want {
		t.Errorf("planned is %q, want %q", got, c.want)
	}
}

func TestWhatIsWrongAsideIsSaidByDegradedAlone(t *testing.T) {
	aside := &Problem{Reason: v1alpha1.ReasonExpansionRefused, Message: "no", IsAside: true}
	for sentence, row := range map[string]struct {
		plan    Plan
		outcome Outcome
	}{
		"where the executor met it": {Plan{}, Outcome{Problem: aside, IsDone: true}},
		"where the plan says it":    {Plan{Aside: aside}, Outcome{IsDone: true}},
	} {
		b, wanted := settledDatabase()
		status := Report(b.build(), wanted, row.plan, row.outcome, noon())
		ready, degraded := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded)
		if ready.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonAvailable || degraded.Status != metav1.ConditionTrue || degraded.Reason != aside.Reason {
			t.Errorf("%s: Ready is %s/%s and Degraded %s/%s", sentence, ready.Status, ready.Reason, degraded.Status, degraded.Reason)
		}
		if status.ObservedGeneration != b.Database.Generation {
			t.Errorf("%s: generation %d is observed", sentence, status.ObservedGeneration)
		}
	}
}

func TestTheStatusSaysOfEachParameterHowItTakesEffectAndWhether(t *testing.T) {
	mounts := func(name string) func(*Member) {
		return func(m *Member) {
			m.Pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name},
			}}}}
		}
	}
	for sentence, row := range map[string]struct {
		changes []func(*Member)
		want    [2]bool
	}{
		"both":                      {[]func(*Member){hasSettings("timeout=7\n"), mounts("db-config-1")}, [2]bool{true, true}},
		"neither yet":               {[]func(*Member){hasSettings("timeout=0\n"), mounts("db-config-0")}, [2]bool{false, false}},
		"neither, while it is mute": {[]func(*Member){hasSettings("timeout=7\n"), mounts("db-config-1"), silent}, [2]bool{false, false}},
	} {
		b, wanted := settledDatabase(row.changes...)
		wanted.Live, wanted.ConfigName = Settings{"timeout": "7"}, "db-config-1"
		wanted.Parameters = []Parameter{{Name: "databases"}, {Name: "timeout", IsLive: true}}
		got := Report(b.build(), wanted, Plan{}, Outcome{IsDone: true}, noon()).Config
		want := []v1alpha1.ParameterStatus{
			{Name: "databases", Change: v1alpha1.ParameterChangeRestart, InEffect: row.want[0]},
			{Name: "timeout", Change: v1alpha1.ParameterChangeLive, InEffect: row.want[1]},
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", sentence, got, want)
		}
	}
}

func TestAPodOfTheFormerStatefulSetIsWaitedForAMoment(t *testing.T) {
	b := aDatabase()
	b.Awaiting = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}}}
	if !b.build().IsHandingOver(noon()) {
		t.Error("it isn't waited for while there is no StatefulSet")
	}
	b.with(KindStatefulSet, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", CreationTimestamp: metav1.NewTime(noon())}})
	if !b.build().IsHandingOver(noon().Add(podPatience - time.Second)) {
		t.Error("it isn't waited for by a new StatefulSet")
	}
	if b.build().IsHandingOver(noon().Add(podPatience)) {
		t.Error("it is waited for without an end")
	}
	if got := b.build().LosesPatienceIn(noon().Add(time.Second)); got != podPatience-time.Second {
		t.Errorf("it is looked at again after %s", got)
	}
}

func TestAServerThatHasJustStartedIsGivenAMoment(t *testing.T) {
	member := func(m *Member) {
		m.Probe.Answers, m.Probe.Failure, m.Probe.ExpectedSince = false, "the connection fails", noon()
	}
	b := aDatabase().withMember(member)
	for wait, reason := range map[time.Duration]string{
		0:                                v1alpha1.ReasonCreating,
		answerPatience - time.Nanosecond: v1alpha1.ReasonCreating,
		answerPatience:                   v1alpha1.ReasonEngineNotResponding,
	} {
		now := noon().Add(wait)
		status := Report(b.build(), Desired{}, Plan{}, Outcome{IsDone: true}, now)
		if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason; got != reason {
			t.Errorf("after %s Ready says %s, want %s", wait, got, reason)
		}
		if left := b.build().LosesPatienceIn(now); left != answerPatience-wait {
			t.Errorf("after %s it is looked at again after %s", wait, left)
		}
	}
}

func TestAPodThatIsNotMadeIsTroubleAfterAMoment(t *testing.T) {
	b := aDatabase()
	b.AbsentSince = noon()
	for wait, reason := range map[time.Duration]string{0: v1alpha1.ReasonCreating, podPatience: v1alpha1.ReasonPodRefused} {
		status := Report(b.build(), Desired{}, Plan{}, Outcome{IsDone: true}, noon().Add(wait))
		if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason; got != reason {
			t.Errorf("after %s Ready says %s, want %s", wait, got, reason)
		}
	}
}
