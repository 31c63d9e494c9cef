//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	applyv1alpha1 "coolops.cn/database-manager/pkg/generated/applyconfiguration/coolops/v1alpha1"
)

func TestDatabaseManagersHaveTheShortNameDM(t *testing.T) {
	list, err := env.kube.Discovery().ServerResourcesForGroupVersion(groupVersion.String())
	if err != nil {
		t.Fatalf("ask for the resources of the group: %v", err)
	}
	index := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "databasemanagers" })
	if index < 0 {
		t.Fatalf("no databasemanagers among %v", list.APIResources)
	}
	resource := list.APIResources[index]
	if !slices.Equal(resource.ShortNames, []string{"dm"}) || resource.Kind != "DatabaseManager" || !resource.Namespaced {
		t.Errorf("got short names %v, kind %s, namespaced %t", resource.ShortNames, resource.Kind, resource.Namespaced)
	}
}

func TestScaleSubresource(t *testing.T) {
	namespace := newNamespace(t)
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	asked := ordersDatabase()
	durable(&asked.Spec) // without storage one stays one
	if _, err := databases.Create(t.Context(), asked, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	status := applyv1alpha1.DatabaseManager("orders", namespace).WithStatus(applyv1alpha1.DatabaseManagerStatus().
		WithReplicas(1).WithSelector("app.kubernetes.io/instance=orders"))
	if _, err := databases.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: fieldManager}); err != nil {
		t.Fatalf("write the status: %v", err)
	}

	scale, err := databases.GetScale(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the scale: %v", err)
	}
	want := autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app.kubernetes.io/instance=orders"}
	if scale.Spec.Replicas != 1 || scale.Status != want {
		t.Errorf("got %d replicas asked for and the status %+v, want 1 and %+v", scale.Spec.Replicas, scale.Status, want)
	}

	scale.Spec.Replicas = 3
	scale, err = databases.UpdateScale(t.Context(), "orders", scale, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("scale to 3: %v", err)
	}
	stored, err := databases.Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil || stored.Spec.Replicas == nil || *stored.Spec.Replicas != 3 {
		t.Errorf("after scaling to 3 the spec is %+v (%v)", stored.Spec, err)
	}

	for _, replicas := range []int32{0, 11} {
		scale.Spec.Replicas = replicas
		if _, err := databases.UpdateScale(t.Context(), "orders", scale, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("scale to %d: got %v, want a refusal", replicas, err)
		}
	}
}

// TestReapplyWithoutReplicasKeepsWhatAnAutoscalerSet is why replicas has a
// default: who leaves it out doesn't own it.
func TestReapplyWithoutReplicasKeepsWhatAnAutoscalerSet(t *testing.T) {
	namespace := newNamespace(t)
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	intent := applyv1alpha1.DatabaseManager("orders", namespace).WithSpec(applyv1alpha1.DatabaseManagerSpec().
		WithDeploymentName("orders-db").WithDBType(v1alpha1.DatabaseTypeRedis).
		WithStorage(applyv1alpha1.StorageSpec().WithSize(resource.MustParse("1Gi"))))
	options := metav1.ApplyOptions{FieldManager: fieldManager}
	if _, err := databases.Apply(t.Context(), intent, options); err != nil {
		t.Fatalf("apply: %v", err)
	}
	scale, err := databases.GetScale(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the scale: %v", err)
	}
	scale.Spec.Replicas = 4
	if _, err := databases.UpdateScale(t.Context(), "orders", scale, metav1.UpdateOptions{FieldManager: "autoscaler"}); err != nil {
		t.Fatalf("scale: %v", err)
	}
	stored, err := databases.Apply(t.Context(), intent, options)
	if err != nil {
		t.Fatalf("apply again: %v", err)
	}
	if *stored.Spec.Replicas != 4 {
		t.Errorf("got %d replicas, want the 4 of the autoscaler", *stored.Spec.Replicas)
	}
}

func TestStatusIsWrittenThroughItsSubresourceOnly(t *testing.T) {
	namespace := newNamespace(t)
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	withStatus := ordersDatabase()
	withStatus.Status.CurrentPrimary = "forged"
	created, err := databases.Create(t.Context(), withStatus, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
	if created.Status.CurrentPrimary != "" {
		t.Errorf("a status came in with the resource: %+v", created.Status)
	}
	status := applyv1alpha1.DatabaseManager("orders", namespace).WithStatus(applyv1alpha1.DatabaseManagerStatus().
		WithObservedGeneration(created.Generation).WithCurrentPrimary("orders-db-0"))
	written, err := databases.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: fieldManager})
	if err != nil {
		t.Fatalf("write the status: %v", err)
	}
	if written.Status.CurrentPrimary != "orders-db-0" || written.Generation != created.Generation {
		t.Errorf("got the status %+v at generation %d, want the primary, and the generation %d as before", written.Status, written.Generation, created.Generation)
	}
}

func TestPrinterColumns(t *testing.T) {
	namespace := newNamespace(t)
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	if _, err := databases.Create(t.Context(), ordersDatabase(), metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	status := ordersDatabase()
	status.Status = v1alpha1.DatabaseManagerStatus{
		AvailableReplicas: 1,
		CurrentPrimary:    "orders-db-0",
		CurrentVersion:    "8.0",
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUpToDate, LastTransitionTime: metav1.Now()},
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable, LastTransitionTime: metav1.Now()},
		},
	}
	stored, err := databases.Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the database: %v", err)
	}
	status.ResourceVersion = stored.ResourceVersion
	if _, err := databases.UpdateStatus(t.Context(), status, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("write the status: %v", err)
	}

	table := readTable(t, namespace)
	var names, cells []string
	for i, column := range table.ColumnDefinitions {
		if column.Name != "AGE" { // it moves
			names = append(names, column.Name)
			cells = append(cells, strings.Trim(string(mustMarshal(t, table.Rows[0].Cells[i])), `"`))
		}
	}
	if want := []string{"Name", "TYPE", "VERSION", "DESIRED", "AVAILABLE", "PRIMARY", "STATUS"}; !slices.Equal(names, want) {
		t.Errorf("got the columns %v, want %v and AGE", names, want)
	}
	if want := []string{"orders", "redis", "8.0", "1", "1", "orders-db-0", "Available"}; !slices.Equal(cells, want) {
		t.Errorf("got the cells %v, want %v", cells, want)
	}
	if last := table.ColumnDefinitions[len(table.ColumnDefinitions)-1].Name; last != "AGE" {
		t.Errorf("the last column is %s, want AGE", last)
	}
}

// readTable asks as kubectl get does.
func readTable(t *testing.T, namespace string) metav1.Table {
	t.Helper()
	raw, err := env.databases.CoolopsV1alpha1().RESTClient().Get().
		Namespace(namespace).Resource("databasemanagers").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("read the table: %v", err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatalf("decode the table: %v", err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("got %d rows, want 1", len(table.Rows))
	}
	return table
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode %v: %v", value, err)
	}
	return raw
}

func TestSamplesAreAccepted(t *testing.T) {
	namespace := newNamespace(t)
	paths, err := filepath.Glob(filepath.Join(repository, "config", "samples", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no samples (%v)", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			objects, err := readManifests(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				resource, isKnown := map[string]schema.GroupVersionResource{"DatabaseManager": databaseResource, "Foo": fooResource}[object.GetKind()]
				if !isKnown {
					t.Fatalf("%s is of the kind %s", object.GetName(), object.GetKind())
				}
				if _, err := env.dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), object, strict); err != nil {
					t.Errorf("create %s: %v", object.GetName(), err)
				}
			}
		})
	}
}

// ordersDatabase is the smallest database.
func ordersDatabase() *v1alpha1.DatabaseManager {
	return &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: "orders-db", DBType: v1alpha1.DatabaseTypeRedis},
	}
}
