// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// noon is when all tests take place.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

const (
	ourUID     = types.UID("uid-of-orders")
	anotherUID = types.UID("uid-of-another")
)

// snapshotBuilder builds the snapshot of a database that runs well, with a
// volume, unless it is told otherwise.
type snapshotBuilder struct{ Snapshot }

func aDatabase() *snapshotBuilder {
	database := &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: ourUID, Generation: 3},
		Spec: v1alpha1.DatabaseManagerSpec{
			DeploymentName: "db",
			DBType:         v1alpha1.DatabaseTypeRedis,
			Storage:        &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")},
		},
	}
	return &snapshotBuilder{Snapshot{Database: database, Objects: map[Ref]metav1.Object{}, Siblings: map[types.UID]string{}}}
}

func (b *snapshotBuilder) ephemeral() *snapshotBuilder {
	b.Database.Spec.Storage = nil
	return b
}

func (b *snapshotBuilder) deleting() *snapshotBuilder {
	b.Database.DeletionTimestamp = new(metav1.NewTime(noon()))
	return b
}

// with adds an object as it was found.
func (b *snapshotBuilder) with(kind Kind, object metav1.Object) *snapshotBuilder {
	b.Objects[Ref{Kind: kind, Name: object.GetName()}] = object
	return b
}

// withAll adds every child of desired as it should be.
func (b *snapshotBuilder) withAll(desired Desired) *snapshotBuilder {
	b.with(desired.Stem.Kind, asObject(b.Database, desired.Stem))
	for _, child := range desired.Children {
		b.with(child.Kind, asObject(b.Database, child))
	}
	return b
}

// withMember adds a pod that runs the revision, and answers.
func (b *snapshotBuilder) withMember(changes ...func(*Member)) *snapshotBuilder {
	member := Member{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "db-0", Namespace: "shop", UID: "uid-of-db-0", CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
				Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"},
			},
			Status: corev1.PodStatus{
				Phase:             corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Started: new(true), Image: "redis:8.0"}},
			},
		},
		Probe: Probe{
			WatchedSince: noon().Add(-time.Hour), IsAsked: true, Answers: true,
			Engine: EngineState{Role: v1alpha1.MemberRolePrimary, Version: "8.0.6", RunID: "run"},
		},
	}
	for _, change := range changes {
		change(&member)
	}
	b.Members = append(b.Members, member)
	return b
}

func (b *snapshotBuilder) build() Snapshot { return b.Snapshot }

// desired is what the database of aDatabase renders to, in small.
func desired(b *snapshotBuilder) Desired {
	workload := Ref{Kind: KindStatefulSet, Name: "db"}
	if b.Database.Spec.Storage == nil {
		workload.Kind = KindDeployment
	}
	result := Desired{
		Stem: aChild(Ref{KindService, "db-members"}),
		Children: []Child{
			aSecret("db-auth", b.isDurable()), aSecret("db-admin", b.isDurable()),
			aChild(Ref{KindConfigMap, "db-config-1"}), aChild(Ref{KindService, "db"}), aChild(workload),
		},
		DataID:  string(ourUID),
		Members: 1,
	}
	if b.isDurable() {
		claim := aChild(Ref{KindVolumeClaim, "data-db-0"})
		claim.IsRetained = true
		result.Claims = []Child{claim}
	}
	return result
}

func aChild(ref Ref) Child {
	return Child{Ref: ref, Hash: "hash-1", Fields: map[string]any{"metadata": map[string]any{"name": ref.Name}}}
}

func aSecret(name string, isRetained bool) Child {
	secret := aChild(Ref{KindSecret, name})
	secret.IsRetained = isRetained
	secret.Template = map[string]string{PasswordKey: PasswordMark}
	return secret
}

// asObject is what the cluster holds of a child of ours.
func asObject(database *v1alpha1.DatabaseManager, child Child) metav1.Object {
	metadata := metav1.ObjectMeta{
		Name: child.Name, Namespace: "shop", UID: types.UID("uid-of-" + child.String()),
		CreationTimestamp: metav1.NewTime(noon().Add(-2 * time.Hour)),
		Labels:            retained("redis", "db", string(ourUID), string(ourUID)),
		Annotations:       map[string]string{v1alpha1.AnnotationIntentHash: child.Hash},
	}
	if !child.IsRetained {
		metadata.OwnerReferences = []metav1.OwnerReference{{Kind: "DatabaseManager", Name: database.Name, UID: database.UID, Controller: new(true)}}
	}
	switch child.Kind {
	case KindSecret:
		return &corev1.Secret{ObjectMeta: metadata, Data: map[string][]byte{PasswordKey: []byte("s3cret")}}
	case KindConfigMap:
		return &corev1.ConfigMap{ObjectMeta: metadata}
	case KindStatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: metadata, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	case KindDeployment:
		return &appsv1.Deployment{ObjectMeta: metadata}
	case KindVolumeClaim:
		return &corev1.PersistentVolumeClaim{ObjectMeta: metadata}
	default:
		return &corev1.Service{ObjectMeta: metadata}
	}
}

func retained(engine, stem, dataID, owner string) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelEngine: engine, v1alpha1.LabelStem: stem,
		v1alpha1.LabelDataID: dataID, v1alpha1.LabelOwnerUID: owner,
	}
}
