// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// actionsOf describes the actions of a plan.
func actionsOf(plan Plan) []string {
	described := make([]string, 0, len(plan.Actions))
	for _, action := range plan.Actions {
		described = append(described, action.String())
	}
	return described
}

// planCase is a database, and what is to be planned for it.
type planCase struct {
	database *snapshotBuilder
	change   func(*snapshotBuilder, *Desired)
	actions  []string
	reason   string
}

// allNew are the actions for a database that has nothing yet.
func allNew() []string {
	return []string{
		"create Service db-members", "use PersistentVolumeClaim data-db-0", "create Secret db-auth", "create Secret db-admin",
		"create ConfigMap db-topology", "create ConfigMap db-config-1", "create Service db", "create StatefulSet db",
	}
}

// newDatabases are databases that have children yet to be made or taken over.
func newDatabases() map[string]planCase {
	return map[string]planCase{
		"a new database claims the stem, looks at its volume, and makes the rest": {
			aDatabase(), nil, allNew(), "",
		},
		"a new database without storage has no volume to look at": {
			aDatabase().ephemeral(), nil,
			[]string{"create Service db-members", "create Secret db-auth", "create Secret db-admin", "create ConfigMap db-topology", "create ConfigMap db-config-1", "create Service db", "create Deployment db"},
			"",
		},
		"a stem that another database claimed stops everything": {
			aDatabase(), func(b *snapshotBuilder, _ *Desired) {
				b.Siblings[anotherUID] = "first"
				b.with(KindService, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
					Name:            "db-members",
					OwnerReferences: []metav1.OwnerReference{{UID: anotherUID, Controller: new(true)}},
				}})
			}, nil, v1alpha1.ReasonConflict,
		},
		"a retained Secret of a former database is adopted after the stem is claimed": {
			aDatabase(), func(b *snapshotBuilder, _ *Desired) {
				b.with(KindSecret, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: "db-auth", UID: "s", Labels: retained("redis", "db", string(ourUID), "gone")},
					Data:       map[string][]byte{PasswordKey: []byte("old")},
				})
			}, slices.Concat(allNew()[:2], []string{"adopt Secret db-auth"}, allNew()[3:]), "",
		},
		"a retained claim of another engine is refused before anything that stays is made": {
			aDatabase(), func(b *snapshotBuilder, _ *Desired) {
				b.with(KindVolumeClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: retained("mysql", "db", "d", "gone")}})
			}, []string{"create Service db-members"}, v1alpha1.ReasonRetainedDataMismatch,
		},
	}
}

// changedDatabases are databases whose spec or children changed.
func changedDatabases() map[string]planCase {
	return map[string]planCase{
		"a database that is as it should be is left alone": {
			aDatabase(), whole, nil, "",
		},
		"a database that is being deleted is never written for": {
			aDatabase().deleting(), nil, nil, "",
		},
		"an intent that changed is applied": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				d.Children[theService].Hash = "hash-2"
			}, []string{"apply Service db: the intent changed"}, "",
		},
		"a field that somebody changed is put back": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				d.Children[theService].Fields["spec"] = map[string]any{"type": "ClusterIP"}
			}, []string{"apply Service db: the field spec.type was changed"}, "",
		},
		"a spec is applied though the member is broken": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				wholeBut(func(m *Member) { m.Probe.Answers = false; m.Pod.Status.Phase = corev1.PodPending })(b, d)
				d.Children[theWorkload].Hash = "hash-2"
			}, []string{"apply StatefulSet db: the intent changed"}, "",
		},
	}
}

// membersToReplace are databases with a member that doesn't run what is wanted.
func membersToReplace() map[string]planCase {
	return map[string]planCase{
		"a member of an older revision is replaced, ready or not": {
			aDatabase(), wholeBut(func(m *Member) {
				m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old"
				m.Probe.Answers = false
			}), []string{"evict Pod db-0: it runs revision old, wanted is new"}, "",
		},
		"a member that is leaving already isn't asked again": {
			aDatabase(), wholeBut(func(m *Member) {
				m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old"
				m.Pod.DeletionTimestamp = new(metav1.NewTime(noon()))
			}), nil, "",
		},
		"no member is replaced on what a StatefulSet said of an older spec": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				wholeBut(func(m *Member) { m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old" })(b, d)
				b.Objects[Ref{KindStatefulSet, "db"}].SetGeneration(2)
			}, nil, "",
		},
		"a member that is older than a Secret's password is restarted with it": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				b.Objects[Ref{KindSecret, "db-admin"}].SetCreationTimestamp(metav1.NewTime(noon()))
			}, []string{"evict Pod db-0: the password in Secret db-admin is newer than the member"}, "",
		},
		"a Secret that was put back as it was restarts nobody": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				secret := b.Objects[Ref{KindSecret, "db-admin"}]
				secret.SetCreationTimestamp(metav1.NewTime(noon()))
				secret.GetAnnotations()[v1alpha1.AnnotationIssuedAt] = noon().Add(-2 * time.Hour).Format(time.RFC3339)
			}, nil, "",
		},
	}
}

// leftovers are databases with objects that nobody needs, or that are going.
func leftovers() map[string]planCase {
	return map[string]planCase{
		"an old ConfigMap goes once no member has it mounted": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				b.with(KindConfigMap, asObject(b.Database, aChild(Ref{KindConfigMap, "db-config-0"})))
			}, []string{"delete ConfigMap db-config-0"}, "",
		},
		"an old ConfigMap stays while a member has it mounted": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				wholeBut(func(m *Member) {
					m.Pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "db-config-0"},
					}}}}
				})(b, d)
				b.with(KindConfigMap, asObject(b.Database, aChild(Ref{KindConfigMap, "db-config-0"})))
			}, nil, "",
		},
		"a ConfigMap that isn't ours is never deleted": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				b.with(KindConfigMap, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db-config-0"}})
			}, nil, "",
		},
		"a child that is being deleted is waited for": {
			aDatabase(), func(b *snapshotBuilder, d *Desired) {
				whole(b, d)
				b.Objects[Ref{KindService, "db"}].SetDeletionTimestamp(new(metav1.NewTime(noon())))
			}, nil, v1alpha1.ReasonWaitingForMember,
		},
	}
}

func TestThePlanOf(t *testing.T) {
	for _, rows := range []map[string]planCase{newDatabases(), changedDatabases(), membersToReplace(), leftovers(), topologyPlans()} {
		for sentence, row := range rows {
			t.Run(sentence, row.check)
		}
	}
}

// check plans for the database.
func (c planCase) check(t *testing.T) {
	wanted := desired(c.database)
	if c.change != nil {
		c.change(c.database, &wanted)
	}
	wanted.Topology.move = c.database.build().move(wanted.Topology.Topology, anEngine(), noon())
	got := Make(c.database.build(), wanted, nil, noon())
	if !slices.Equal(actionsOf(got), c.actions) {
		t.Errorf("actions are\n\t%s\nwant\n\t%s", strings.Join(actionsOf(got), "\n\t"), strings.Join(c.actions, "\n\t"))
	}
	if reason := reasonOf(got.Problem); reason != c.reason {
		t.Errorf("the problem is %q, want %q", reason, c.reason)
	}
}

// whole makes the database whole: all children, and a member that answers.
func whole(b *snapshotBuilder, d *Desired) { wholeBut(func(*Member) {})(b, d) }

// wholeBut is whole, but for a change to the member.
func wholeBut(change func(*Member)) func(*snapshotBuilder, *Desired) {
	return func(b *snapshotBuilder, d *Desired) {
		d.setTopology(b.isDurable(), settled(b))
		b.withAll(*d).withMember(change)
	}
}

func reasonOf(problem *Problem) string {
	if problem == nil {
		return ""
	}
	return problem.Reason
}

func TestAProblemWithTheSpecStopsThePlan(t *testing.T) {
	database := aDatabase()
	got := Make(database.build(), Desired{}, &Problem{Reason: v1alpha1.ReasonInvalidSpec}, noon())
	if len(got.Actions) > 0 || reasonOf(got.Problem) != v1alpha1.ReasonInvalidSpec {
		t.Errorf("got %v and %v, want no action and the problem", actionsOf(got), got.Problem)
	}
}

func TestALostSecretIsToldOf(t *testing.T) {
	database := aDatabase()
	wanted := desired(database)
	whole(database, &wanted)
	delete(database.Objects, Ref{KindSecret, "db-auth"})
	got := Make(database.build(), wanted, nil, noon())
	if len(got.Notices) != 1 || got.Notices[0].Reason != v1alpha1.EventSecretLost || !strings.Contains(got.Notices[0].Message, "made anew") {
		t.Errorf("notices are %v", got.Notices)
	}
	wanted.Children[0] = wanted.Children[0].WithPassword("known")
	got = Make(database.build(), wanted, nil, noon())
	if len(got.Notices) != 1 || !strings.Contains(got.Notices[0].Message, "put back as it was") {
		t.Errorf("notices are %v", got.Notices)
	}
}

func TestAMemberThatHasntBeenAskedIsWaitedForButNotForever(t *testing.T) {
	notAsked := func(since time.Duration) Snapshot {
		return aDatabase().withMember(func(m *Member) { m.Probe = Probe{WatchedSince: noon().Add(-since)} }).build()
	}
	if got := notAsked(5 * time.Second).SettlesIn(noon()); got != 10*time.Second {
		t.Errorf("after 5 s it settles in %s, want 10s", got)
	}
	if got := notAsked(20 * time.Second).SettlesIn(noon()); got != 0 {
		t.Errorf("after 20 s it settles in %s, want 0s", got)
	}
}

func TestAStatusWaitsForAServerThatHasStartedAndNeverAnswered(t *testing.T) {
	begun := func(m *Member) {
		m.Probe = Probe{WatchedSince: noon().Add(-5 * time.Second), IsAsked: true, Failure: "no answer within 1s"}
	}
	for sentence, row := range map[string]struct {
		change func(*Member)
		want   time.Duration
	}{
		"for the rest of the time":    {begun, 10 * time.Second},
		"no longer, once it answered": {func(m *Member) { begun(m); m.Probe.Engine.RunID = "run" }, 0},
		"not for one that starts":     {func(m *Member) { begun(m); m.Pod.Status.ContainerStatuses[0].Started = new(false) }, 0},
		"not for ever":                {func(m *Member) { begun(m); m.Probe.WatchedSince = noon().Add(-SettleTime) }, 0},
	} {
		if got := aDatabase().withMember(row.change).build().SettlesIn(noon()); got != row.want {
			t.Errorf("%s: it settles in %s, want %s", sentence, got, row.want)
		}
	}
}
