//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	foov1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// memory is what the scenarios change resources to.
const memory = "96Mi"

// scenarios are all that are played: those below, and of each engine all that it
// has, or else one, which the seed chooses.
func scenarios() []scenario {
	all := ownScenarios()
	for i, engine := range everyEngine() {
		of := databaseScenarios(engine)
		for j := range of {
			of[j].name = string(engine) + ": " + of[j].name
		}
		if !env.isFull {
			of = of[(env.seed+uint64(i))%uint64(len(of)):][:1]
		}
		all = append(all, of...)
	}
	return all
}

// everyEngine lists the engines, or those that FAULTS_ENGINES names.
func everyEngine() []v1alpha1.DatabaseType {
	if named := os.Getenv("FAULTS_ENGINES"); named != "" {
		var engines []v1alpha1.DatabaseType
		for name := range strings.FieldsSeq(named) {
			engines = append(engines, v1alpha1.DatabaseType(name))
		}
		return engines
	}
	return []v1alpha1.DatabaseType{
		v1alpha1.DatabaseTypeMySQL, v1alpha1.DatabaseTypeMariaDB, v1alpha1.DatabaseTypePostgreSQL, v1alpha1.DatabaseTypeRedis, v1alpha1.DatabaseTypeValkey,
	}
}

func ownScenarios() []scenario {
	return []scenario{
		{"a database with storage", []step{
			{"create", createDatabase(&v1alpha1.StorageSpec{Size: resource.MustParse("64Mi")}), isReady},
			{"change", changeDatabase, isStatefulSetChanged},
			{"delete", deleteDatabase, hasNoWorkload},
			{"create again", createDatabase(&v1alpha1.StorageSpec{Size: resource.MustParse("64Mi")}), isReady},
		}, 0},
		{"a database without storage", []step{
			{"create", createDatabase(nil), isReady},
			{"change", changeDatabase, isDeploymentChanged},
			{"delete", deleteDatabase, hasNoWorkload},
		}, 0},
		{"a Foo", []step{
			{"create", createFoo, hasReplicas(2)},
			{"change", changeFoo, hasReplicas(3)},
			{"delete", deleteFoo, hasNoDeployment},
		}, 0},
	}
}

func createDatabase(storage *v1alpha1.StorageSpec) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: "orders"},
			Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: "db", DBType: v1alpha1.DatabaseTypeRedis, Storage: storage},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("create a database: %v", err)
		}
	}
}

func changeDatabase(t *testing.T, namespace string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"resources":{"limits":{"memory":%q}}}}`, memory)
	_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Patch(t.Context(), "orders", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("change the database: %v", err)
	}
}

func deleteDatabase(t *testing.T, namespace string) {
	t.Helper()
	if err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the database: %v", err)
	}
}

// isSeen tells whether the status is of the spec as it is.
func isSeen(ctx context.Context, namespace string) error {
	database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
	if err == nil && database.Status.ObservedGeneration != database.Generation {
		err = fmt.Errorf("generation %d is observed, want %d", database.Status.ObservedGeneration, database.Generation)
	}
	return err
}

// isReady tells whether every member of the database answers.
func isReady(ctx context.Context, namespace string) error {
	database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return saysReady(database)
}

// saysReady tells whether its status says so, of the spec as it is.
func saysReady(database *v1alpha1.DatabaseManager) error {
	ready := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != database.Generation {
		return fmt.Errorf("at generation %d the condition Ready is %+v", database.Generation, ready)
	}
	return nil
}

func isStatefulSetChanged(ctx context.Context, namespace string) error {
	set, err := env.kube.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return errors.Join(hasMemory(set.Spec.Template), isReady(ctx, namespace))
}

func isDeploymentChanged(ctx context.Context, namespace string) error {
	deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return errors.Join(hasMemory(deployment.Spec.Template), isReady(ctx, namespace))
}

func hasMemory(template corev1.PodTemplateSpec) error {
	got := template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
	if !got.Equal(resource.MustParse(memory)) {
		return fmt.Errorf("the memory limit is %s, want %s", got.String(), memory)
	}
	return nil
}

// hasNoWorkload tells whether the database is gone, with what goes with it.
func hasNoWorkload(ctx context.Context, namespace string) error {
	if _, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return errors.Join(err, errors.New("the database is still there"))
	}
	ours := metav1.ListOptions{LabelSelector: v1alpha1.LabelStem}
	services, err := env.kube.CoreV1().Services(namespace).List(ctx, ours)
	if err != nil {
		return err
	}
	// The topology stays with the volume.
	configs, err := env.kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: v1alpha1.LabelStem + ",!" + v1alpha1.LabelDataID,
	})
	if err != nil {
		return err
	}
	pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, ours)
	if err != nil {
		return err
	}
	if left := len(services.Items) + len(configs.Items) + len(pods.Items); left > 0 {
		return fmt.Errorf("left are %d Services, %d ConfigMaps, %d pods", len(services.Items), len(configs.Items), len(pods.Items))
	}
	return nil
}

func createFoo(t *testing.T, namespace string) {
	t.Helper()
	makeFoo(t, namespace, "example-foo", 2)
}

// makeFoo creates a Foo whose Deployment has its name.
func makeFoo(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	_, err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Create(t.Context(), &foov1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       foov1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the Foo %s: %v", name, err)
	}
}

func changeFoo(t *testing.T, namespace string) {
	t.Helper()
	_, err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Patch(t.Context(), "example-foo", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("change the Foo: %v", err)
	}
}

func deleteFoo(t *testing.T, namespace string) {
	t.Helper()
	if err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the Foo: %v", err)
	}
}

// hasReplicas tells whether the Foo's Deployment has so many, and the Foo says so.
func hasReplicas(want int32) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		foo, err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
		if err != nil {
			return err
		}
		deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *deployment.Spec.Replicas != want {
			return fmt.Errorf("%d replicas, want %d", *deployment.Spec.Replicas, want)
		}
		if !saysWell(foo) {
			return errors.New("the Foo doesn't say that all is well")
		}
		return nil
	}
}

// saysWell tells whether a Foo's status says that all is well, of the spec as it is.
func saysWell(foo *foov1alpha1.Foo) bool {
	return slices.ContainsFunc(foo.Status.Conditions, func(condition metav1.Condition) bool {
		return condition.ObservedGeneration == foo.Generation && condition.Status == metav1.ConditionTrue
	})
}

func hasNoDeployment(ctx context.Context, namespace string) error {
	_, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("the Deployment is still there"))
}
