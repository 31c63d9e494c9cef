//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// tuning is what a scenario sets of an engine's parameters, and versions of it.
type tuning struct {
	live, fixed string // "name":"value"
	// older and newer are the same where no version is upgraded in place.
	older, newer string
}

func tuningOf(engine v1alpha1.DatabaseType) tuning {
	switch engine {
	case v1alpha1.DatabaseTypePostgreSQL:
		return tuning{`"work_mem":"8MB"`, `"max_connections":"120"`, "18", "18"}
	case v1alpha1.DatabaseTypeMySQL:
		return tuning{`"max_connections":"120"`, `"innodb_ft_min_token_size":"2"`, "9.7", "9.7"}
	case v1alpha1.DatabaseTypeMariaDB:
		return tuning{`"max_connections":"120"`, `"innodb_ft_min_token_size":"2"`, "10.11", "11.8"}
	case v1alpha1.DatabaseTypeValkey:
		return tuning{`"timeout":"60"`, `"tcp-backlog":"256"`, "8.1", "9.1"}
	default:
		return tuning{`"timeout":"60"`, `"tcp-backlog":"256"`, "7.0", "8.0"}
	}
}

func createMembers(engine v1alpha1.DatabaseType, members int32, changes ...func(*v1alpha1.DatabaseManagerSpec)) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		spec := v1alpha1.DatabaseManagerSpec{
			DeploymentName: "db", DBType: engine, Replicas: &members, Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("64Mi")},
		}
		for _, change := range changes {
			change(&spec)
		}
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: spec,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("create a database: %v", err)
		}
	}
}

func patchDatabase(patch string) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Patch(t.Context(), "orders", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("patch the database: %v", err)
		}
	}
}

func switchOver(name string) func(*testing.T, string) {
	return patchDatabase(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationSwitchover, name))
}

func killServer(name string) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		if err := env.player.Kill(namespace, name); err != nil {
			t.Fatal(err)
		}
	}
}

// rotate gives the application another password.
func rotate(t *testing.T, namespace string) {
	t.Helper()
	_, err := env.kube.CoreV1().Secrets(namespace).Patch(t.Context(), "db-auth", types.MergePatchType,
		[]byte(`{"stringData":{"password":"another-password-of-the-application"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("change the password: %v", err)
	}
}

// takeName makes an object whose name the database needs.
func takeName(t *testing.T, namespace string) {
	t.Helper()
	_, err := env.kube.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a Service: %v", err)
	}
}

func freeName(t *testing.T, namespace string) {
	t.Helper()
	if err := env.kube.CoreV1().Services(namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete a Service: %v", err)
	}
}

// says tells whether the condition Ready has a reason.
func says(reason string) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range database.Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady && condition.Reason == reason && condition.ObservedGeneration == database.Generation {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v, want the reason %s", database.Status.Conditions, reason)
	}
}

// areMembers tells whether so many members are ready, all but the primary follow
// it, and it is the one of that name, if there is one.
func areMembers(count int, primary string) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		if err := isReady(ctx, namespace); err != nil {
			return err
		}
		database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := database.Status
		if primary != "" && status.CurrentPrimary != primary {
			return fmt.Errorf("the primary is %q, want %q", status.CurrentPrimary, primary)
		}
		var names []string
		for _, member := range status.Members {
			if want := member.Name == status.CurrentPrimary; (member.Role == v1alpha1.MemberRolePrimary) != want || member.Role == "" {
				return fmt.Errorf("%s is %q, and %s the primary", member.Name, member.Role, status.CurrentPrimary)
			}
			names = append(names, member.Name)
		}
		slices.Sort(names)
		if len(names) != count || names[count-1] != "db-"+strconv.Itoa(count-1) {
			return fmt.Errorf("the members are %v, want %d", names, count)
		}
		return nil
	}
}

// isTuned is areMembers, with the parameters that the spec sets in effect.
func isTuned(count int) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		if err := areMembers(count, "")(ctx, namespace); err != nil {
			return err
		}
		database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(database.Status.Config) != len(database.Spec.Config) {
			return fmt.Errorf("the status has %d parameters, want %d", len(database.Status.Config), len(database.Spec.Config))
		}
		for _, parameter := range database.Status.Config {
			if !parameter.InEffect {
				return fmt.Errorf("%s isn't in effect", parameter.Name)
			}
		}
		return nil
	}
}

// hasVersion is areMembers, on a version.
func hasVersion(count int, version string) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		database, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := database.Status.CurrentVersion; got != version+".1" {
			return fmt.Errorf("the version is %q, want %s", got, version)
		}
		return areMembers(count, "")(ctx, namespace)
	}
}

// hasRoom tells whether the first member's volume has a size.
func hasRoom(size string) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := claim.Status.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse(size)) != 0 {
			return fmt.Errorf("the volume has %s, want %s", got.String(), size)
		}
		return isReady(ctx, namespace)
	}
}

// hasNoVolume is hasNoWorkload, with nothing left to make the database from again.
func hasNoVolume(ctx context.Context, namespace string) error {
	if err := hasNoWorkload(ctx, namespace); err != nil {
		return err
	}
	_, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("the volume is still there"))
}

// databaseScenarios are what a user does to a database of one engine. A first step
// that isn't named makes it.
func databaseScenarios(engine v1alpha1.DatabaseType) []scenario {
	one, three := createMembers(engine, 1), createMembers(engine, 3)
	madeOfOne, madeOfThree := step{"create", one, areMembers(1, "db-0")}, step{"create", three, areMembers(3, "db-0")}
	tuned := tuningOf(engine)
	onVersion := func(version string) func(*v1alpha1.DatabaseManagerSpec) {
		return func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = version }
	}
	deletesVolumes := func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Storage.Retention = &v1alpha1.StorageRetention{WhenDeleted: v1alpha1.RetentionPolicyDelete}
	}
	scenarios := []scenario{
		{"three members are made", []step{madeOfThree}, 0},
		{"a parameter changes live", []step{madeOfOne, {"change", patchDatabase(`{"spec":{"config":{` + tuned.live + `}}}`), isTuned(1)}}, 1},
		{"a parameter takes a restart", []step{madeOfThree, {"change", patchDatabase(`{"spec":{"config":{` + tuned.fixed + `}}}`), isTuned(3)}}, 1},
		{"the volume grows", []step{madeOfOne, {"grow", patchDatabase(`{"spec":{"storage":{"size":"128Mi"}}}`), hasRoom("128Mi")}}, 1},
		{"the password is rotated", []step{madeOfThree, {"rotate", rotate, areMembers(3, "db-0")}}, 1},
		{"it goes with its volumes", []step{{"create", createMembers(engine, 1, deletesVolumes), areMembers(1, "db-0")}, {"delete", deleteDatabase, hasNoVolume}}, 0},
		{"it is deleted and made again", []step{
			madeOfThree,
			{"switch over", switchOver("db-2"), areMembers(3, "db-2")},
			{"delete", deleteDatabase, hasNoWorkload},
			{"create again", three, areMembers(3, "db-2")},
		}, 2},
		{"it is suspended", []step{
			madeOfOne,
			{"suspend", patchDatabase(`{"spec":{"suspend":true,"config":{` + tuned.live + `}}}`), says(v1alpha1.ReasonSuspended)},
			{"go on", patchDatabase(`{"spec":{"suspend":null}}`), isTuned(1)},
		}, 1},
		{"it is shut down", []step{
			madeOfThree,
			{"shut down", patchDatabase(`{"spec":{"shutdown":true}}`), says(v1alpha1.ReasonShutDown)},
			{"start", patchDatabase(`{"spec":{"shutdown":null}}`), areMembers(3, "db-0")},
		}, 1},
		{"a name is taken", []step{
			{"take it", takeName, func(context.Context, string) error { return nil }},
			{"create", one, says(v1alpha1.ReasonConflict)},
			{"free it", freeName, areMembers(1, "db-0")},
		}, 0},
		{"it is scaled up", []step{madeOfOne, {"scale", patchDatabase(`{"spec":{"replicas":3}}`), areMembers(3, "db-0")}}, 1},
		{"it is scaled down past its primary", []step{
			madeOfThree,
			{"switch over", switchOver("db-2"), areMembers(3, "db-2")},
			{"scale", patchDatabase(`{"spec":{"replicas":1}}`), areMembers(1, "db-0")},
		}, 2},
		{"it is scaled down and up at once", []step{
			madeOfThree,
			{"scale", func(t *testing.T, namespace string) {
				t.Helper()
				patchDatabase(`{"spec":{"replicas":1}}`)(t, namespace)
				patchDatabase(`{"spec":{"replicas":3}}`)(t, namespace)
			}, areMembers(3, "db-0")},
		}, 1},
		{"it is switched over", []step{madeOfThree, {"switch over", switchOver("db-1"), areMembers(3, "db-1")}}, 1},
		{"its primary is killed", []step{madeOfThree, {"kill", killServer("db-0"), areMembers(3, "")}}, 1},
	}
	if tuned.older != tuned.newer {
		scenarios = append(scenarios, scenario{"it gets another version", []step{
			{"create", createMembers(engine, 3, onVersion(tuned.older)), areMembers(3, "db-0")},
			{"upgrade", patchDatabase(fmt.Sprintf(`{"spec":{"version":%q}}`, tuned.newer)), hasVersion(3, tuned.newer)},
		}, 1})
	}
	return scenarios
}

// TestPlayedDatabasesAreLedThroughTheirLives has nothing go wrong: it shows that
// the servers that are played do what the scenarios ask for.
func TestPlayedDatabasesAreLedThroughTheirLives(t *testing.T) {
	t.Parallel()
	for _, engine := range everyEngine() {
		for _, s := range databaseScenarios(engine) {
			t.Run(fmt.Sprintf("%s/%s", engine, s.name), func(t *testing.T) {
				t.Parallel()
				(&staging{scenario: s}).run(t, nil)
			})
		}
	}
}
