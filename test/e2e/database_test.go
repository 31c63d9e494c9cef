//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// database is a DatabaseManager under test; its stem is its name and "-db".
type database struct {
	namespace, name string
}

func (d database) stem() string { return d.name + "-db" }

// create creates the resource with a spec that storage and resources complete.
func (d database) create(t *testing.T, storage *v1alpha1.StorageSpec) {
	t.Helper()
	_, err := env.databases.CoolopsV1alpha1().DatabaseManagers(d.namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: d.name},
		Spec: v1alpha1.DatabaseManagerSpec{
			DeploymentName: d.stem(), DBType: "redis", Storage: storage,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", d.name, err)
	}
}

func (d database) get(ctx context.Context) (*v1alpha1.DatabaseManager, error) {
	return env.databases.CoolopsV1alpha1().DatabaseManagers(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
}

// waitReady waits until the operator says Ready of the spec as it is.
func (d database) waitReady(t *testing.T) *v1alpha1.DatabaseManager {
	t.Helper()
	var ready *v1alpha1.DatabaseManager
	eventually(t, 90*time.Second, d.name+" ready", func(ctx context.Context) error {
		stored, err := d.get(ctx)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != stored.Generation {
			return fmt.Errorf("generation %d, Ready is %+v", stored.Generation, condition)
		}
		ready = stored
		return nil
	})
	return ready
}

// pod returns the database's one pod that isn't being deleted.
func (d database) pod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := env.kube.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + d.stem()})
	if err != nil {
		return nil, err
	}
	living := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(living) != 1 {
		return nil, fmt.Errorf("%d pods", len(living))
	}
	return &living[0], nil
}

// deletePod deletes the database's pod and waits for another that is ready.
func (d database) deletePod(t *testing.T) {
	t.Helper()
	old, err := d.pod(t.Context())
	if err != nil {
		t.Fatalf("find the pod of %s: %v", d.name, err)
	}
	if err := env.kube.CoreV1().Pods(d.namespace).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete pod %s: %v", old.Name, err)
	}
	d.waitReplaced(t, old.UID)
}

// waitReplaced waits until another pod than the one with that UID serves.
func (d database) waitReplaced(t *testing.T, old types.UID) *corev1.Pod {
	t.Helper()
	var replacement *corev1.Pod
	eventually(t, 90*time.Second, "another pod of "+d.name, func(ctx context.Context) error {
		pod, err := d.pod(ctx)
		if err != nil {
			return err
		}
		if pod.UID == old || !slices.ContainsFunc(pod.Status.Conditions, isReady) {
			return fmt.Errorf("pod %s (%s) isn't a new one that is ready", pod.Name, pod.UID)
		}
		replacement = pod
		return nil
	})
	d.waitReady(t)
	return replacement
}

func isReady(condition corev1.PodCondition) bool {
	return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
}

// changeMemory asks for another memory limit, and waits until a pod has it.
func (d database) changeMemory(t *testing.T, limit string) {
	t.Helper()
	old, err := d.pod(t.Context())
	if err != nil {
		t.Fatalf("find the pod of %s: %v", d.name, err)
	}
	patch := fmt.Sprintf(`{"spec":{"resources":{"limits":{"memory":%q}}}}`, limit)
	if _, err := env.databases.CoolopsV1alpha1().DatabaseManagers(d.namespace).Patch(t.Context(), d.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("change the resources of %s: %v", d.name, err)
	}
	replacement := d.waitReplaced(t, old.UID)
	if got := replacement.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]; !got.Equal(resource.MustParse(limit)) {
		t.Errorf("memory limit of the new pod: got %s, want %s", got.String(), limit)
	}
}

// delete deletes the resource and waits until all its children but those in kept,
// as kind/name, are gone.
func (d database) delete(t *testing.T, kept ...string) {
	t.Helper()
	if err := env.databases.CoolopsV1alpha1().DatabaseManagers(d.namespace).Delete(t.Context(), d.name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", d.name, err)
	}
	eventually(t, time.Minute, d.name+" gone", func(ctx context.Context) error {
		if _, err := d.get(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the resource: %w", errors.Join(err, errors.New("is still there")))
		}
		left, err := d.children(ctx)
		if err != nil {
			return err
		}
		slices.Sort(kept)
		if !slices.Equal(left, kept) {
			return fmt.Errorf("left are %q, want %q", left, kept)
		}
		return nil
	})
}

// children lists what carries the database's stem, as kind/name, sorted.
func (d database) children(ctx context.Context) ([]string, error) {
	selector := metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + d.stem()}
	core, apps := env.kube.CoreV1(), env.kube.AppsV1()
	var found []string
	for kind, list := range map[string]func() (any, error){
		"Pod":                   func() (any, error) { return core.Pods(d.namespace).List(ctx, selector) },
		"Service":               func() (any, error) { return core.Services(d.namespace).List(ctx, selector) },
		"Secret":                func() (any, error) { return core.Secrets(d.namespace).List(ctx, selector) },
		"ConfigMap":             func() (any, error) { return core.ConfigMaps(d.namespace).List(ctx, selector) },
		"NetworkPolicy":         func() (any, error) { return env.kube.NetworkingV1().NetworkPolicies(d.namespace).List(ctx, selector) },
		"PersistentVolumeClaim": func() (any, error) { return core.PersistentVolumeClaims(d.namespace).List(ctx, selector) },
		"Deployment":            func() (any, error) { return apps.Deployments(d.namespace).List(ctx, selector) },
		"StatefulSet":           func() (any, error) { return apps.StatefulSets(d.namespace).List(ctx, selector) },
		"ReplicaSet":            func() (any, error) { return apps.ReplicaSets(d.namespace).List(ctx, selector) },
	} {
		names, err := listNames(list)
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for _, name := range names {
			found = append(found, kind+"/"+name)
		}
	}
	slices.Sort(found)
	return found, nil
}
