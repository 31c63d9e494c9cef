//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// severalMembers is what a user does to a database of three members.
func severalMembers(engine v1alpha1.DatabaseType) scenario {
	return scenario{fmt.Sprintf("three members of %s", engine), []step{
		{"create", createMembers(engine), areMembers(3, "db-0")},
		{"switch over", switchOver("db-1"), areMembers(3, "db-1")},
		{"scale in past the primary", patchDatabase(`{"spec":{"replicas":1}}`), areMembers(1, "db-0")},
		{"scale out", patchDatabase(`{"spec":{"replicas":3}}`), areMembers(3, "db-0")},
		{"kill the primary", killServer("db-0"), areMembers(3, "")},
		{"delete", deleteDatabase, hasNoWorkload},
	}}
}

func createMembers(engine v1alpha1.DatabaseType) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: "orders"},
			Spec: v1alpha1.DatabaseManagerSpec{
				DeploymentName: "db", DBType: engine, Replicas: new(int32(3)), Storage: &v1alpha1.StorageSpec{Size: resource.MustParse("64Mi")},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("create a database: %v", err)
		}
	}
}

func switchOver(name string) func(*testing.T, string) {
	return patchDatabase(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationSwitchover, name))
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

func killServer(name string) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		if err := env.player.Kill(namespace, name); err != nil {
			t.Fatal(err)
		}
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

// TestPlayedMembersAreLedThroughTheirLives has nothing go wrong: it shows that the
// servers that are played do what the scenarios ask for.
func TestPlayedMembersAreLedThroughTheirLives(t *testing.T) {
	t.Parallel()
	for _, engine := range []v1alpha1.DatabaseType{
		v1alpha1.DatabaseTypeMySQL, v1alpha1.DatabaseTypeMariaDB, v1alpha1.DatabaseTypePostgreSQL, v1alpha1.DatabaseTypeRedis, v1alpha1.DatabaseTypeValkey,
	} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			severalMembers(engine).run(t, nil)
		})
	}
}
