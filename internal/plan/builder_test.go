// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
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

func (b *snapshotBuilder) suspended() *snapshotBuilder {
	b.Database.Spec.Suspend = true
	return b
}

func (b *snapshotBuilder) shutDown() *snapshotBuilder {
	b.Database.Spec.Shutdown = true
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
	for _, child := range append(desired.Children, desired.Claims...) {
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
				Phase:      corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{
					Started: new(true), Image: "redis:8.0", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				}},
			},
		},
		Probe: Probe{
			WatchedSince: noon().Add(-time.Hour), IsAsked: true, Answers: true,
			Engine: EngineState{Role: v1alpha1.MemberRolePrimary, Version: "8.0.6", RunID: "run", Progress: Progress{IsDrained: true}},
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
			aChild(Ref{KindConfigMap, "db-topology"}), aChild(Ref{KindConfigMap, "db-config-1"}), aChild(Ref{KindService, "db"}), aChild(workload),
		},
		Members: 1,
	}
	if b.isDurable() {
		claim := aChild(Ref{KindVolumeClaim, "data-db-0"})
		claim.IsRetained = true
		claim.Fields["metadata"] = map[string]any{"name": claim.Name, "labels": map[string]any{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelEngine: "redis", v1alpha1.LabelStem: "db", v1alpha1.LabelOwnerUID: string(ourUID),
		}}
		result.Claims = []Child{claim}
	}
	result.setTopology(b.isDurable(), TopologyStep{Topology: Topology{State: TopologyNew, Epoch: 1, DataID: string(ourUID)}})
	return result
}

// The places of children in what desired returns.
const (
	theTopology = 2
	theConfig   = 3
	theService  = 4
	theWorkload = 5
)

// setTopology has the topology, and what follows from it, be what step says.
func (d *Desired) setTopology(isDurable bool, step TopologyStep) {
	d.Topology = step
	child := &d.Children[theTopology]
	child.IsRetained = isDurable
	data := map[string]any{}
	for key, value := range step.Data() {
		data[key] = value
	}
	child.Fields["data"] = data
	child.Hash = fmt.Sprint(step.Data())
	for i := range d.Claims {
		d.Claims[i].Hash = step.DataID
		if step.State == TopologyInitialized {
			d.Claims[i].Hash += "-initialized"
		}
	}
}

// settled is the topology of a database that has run for a while.
func settled(b *snapshotBuilder) TopologyStep {
	holder := types.UID("uid-of-db-0")
	if b.isDurable() {
		holder = "uid-of-PersistentVolumeClaim data-db-0"
	}
	return TopologyStep{
		Version:  "7",
		Topology: Topology{State: TopologyInitialized, Epoch: 1, DataID: string(ourUID), Primary: "db-0", Holder: holder},
	}
}

// withTopology adds the ConfigMap of a topology.
func (b *snapshotBuilder) withTopology(topology Topology) *snapshotBuilder {
	d := desired(b)
	d.setTopology(b.isDurable(), TopologyStep{Topology: topology})
	return b.with(KindConfigMap, asObject(b.Database, d.Children[theTopology]))
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
		metadata.ResourceVersion = "7"
		return &corev1.ConfigMap{ObjectMeta: metadata, Data: stringsOf(child.Fields["data"])}
	case KindStatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: metadata, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	case KindDeployment:
		return &appsv1.Deployment{ObjectMeta: metadata}
	case KindVolumeClaim:
		dataID, isMarked := strings.CutSuffix(child.Hash, "-initialized")
		metadata.Labels[v1alpha1.LabelDataID] = dataID
		if isMarked {
			metadata.Annotations[v1alpha1.AnnotationInitialized] = dataID
		}
		return &corev1.PersistentVolumeClaim{ObjectMeta: metadata}
	default:
		return &corev1.Service{ObjectMeta: metadata}
	}
}

// stringsOf reads a map of strings as it stands in a child's fields.
func stringsOf(fields any) map[string]string {
	read := map[string]string{}
	data, isMap := fields.(map[string]any)
	if !isMap {
		return nil
	}
	for key, value := range data {
		read[key] = fmt.Sprint(value)
	}
	return read
}

func retained(engine, stem, dataID, owner string) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelEngine: engine, v1alpha1.LabelStem: stem,
		v1alpha1.LabelDataID: dataID, v1alpha1.LabelOwnerUID: owner,
	}
}
