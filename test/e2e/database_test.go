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
	typed "coolops.cn/database-manager/pkg/generated/clientset/versioned/typed/coolops/v1alpha1"
)

// database is a DatabaseManager under test; its stem is its name and "-db".
type database struct {
	engine
	namespace, name string
}

func (d database) stem() string { return d.name + "-db" }

// durable asks for a volume.
func durable(spec *v1alpha1.DatabaseManagerSpec) {
	spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")}
}

// ofVersion asks for a version.
func ofVersion(version string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = version }
}

// create creates the resource with a spec that the options complete.
func (d database) create(t *testing.T, options ...func(*v1alpha1.DatabaseManagerSpec)) {
	t.Helper()
	created := &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: d.name},
		Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: d.stem(), DBType: d.engine.name},
	}
	for _, option := range options {
		option(&created.Spec)
	}
	if _, err := d.client().Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create %s: %v", d.name, err)
	}
}

func (d database) client() typed.DatabaseManagerInterface {
	return env.databases.CoolopsV1alpha1().DatabaseManagers(d.namespace)
}

func (d database) get(ctx context.Context) (*v1alpha1.DatabaseManager, error) {
	return d.client().Get(ctx, d.name, metav1.GetOptions{})
}

// patch changes the resource by a merge patch.
func (d database) patch(t *testing.T, patch string) {
	t.Helper()
	if _, err := d.client().Patch(t.Context(), d.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("change %s by %s: %v", d.name, patch, err)
	}
}

// waitReady waits until the operator says Ready of the spec as it is, and
// nothing else to do.
func (d database) waitReady(t *testing.T) *v1alpha1.DatabaseManager {
	t.Helper()
	return d.waitFor(t, 3*patience, v1alpha1.ReasonAvailable, v1alpha1.ReasonEphemeralStorage)
}

// waitFor waits until Ready has one of the reasons, for the spec as it is.
func (d database) waitFor(t *testing.T, bound time.Duration, reasons ...string) *v1alpha1.DatabaseManager {
	t.Helper()
	var found *v1alpha1.DatabaseManager
	eventually(t, bound, fmt.Sprintf("%s with a reason of %v", d.name, reasons), func(ctx context.Context) error {
		stored, err := d.get(ctx)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || !slices.Contains(reasons, condition.Reason) || condition.ObservedGeneration != stored.Generation {
			return fmt.Errorf("generation %d, Ready is %+v", stored.Generation, condition)
		}
		found = stored
		return nil
	})
	return found
}

// message is what the condition Ready says.
func message(stored *v1alpha1.DatabaseManager) string {
	return meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady).Message
}

// credentials returns the application's Secret, once there is one.
func (d database) credentials(t *testing.T) map[string]string {
	t.Helper()
	return d.secret(t, d.stem()+"-auth")
}

// secret returns a Secret's content, once there is one.
func (d database) secret(t *testing.T, name string) map[string]string {
	t.Helper()
	content := map[string]string{}
	eventually(t, patience, "Secret "+name, func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(d.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range secret.Data {
			content[key] = string(value)
		}
		return nil
	})
	return content
}

// expectEvent waits for an event about the database.
func (d database) expectEvent(t *testing.T, reason string) {
	t.Helper()
	eventually(t, patience, "an event "+reason, func(ctx context.Context) error {
		list, err := env.kube.EventsV1().Events(d.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Regarding.Name == d.name && event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it isn't among %d", len(list.Items))
	})
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
	old := d.mustPod(t)
	if err := env.kube.CoreV1().Pods(d.namespace).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete pod %s: %v", old.Name, err)
	}
	d.waitReplaced(t, old.UID)
}

// waitReplaced waits until another pod than the one with that UID serves.
func (d database) waitReplaced(t *testing.T, old types.UID) *corev1.Pod {
	t.Helper()
	var replacement *corev1.Pod
	eventually(t, 3*patience, "another pod of "+d.name, func(ctx context.Context) error {
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

// changeMemory asks for a memory limit, and waits until a pod has it.
func (d database) changeMemory(t *testing.T) {
	t.Helper()
	const limit = "768Mi"
	before := d.mustPod(t)
	d.patch(t, fmt.Sprintf(`{"spec":{"resources":{"limits":{"memory":%q}}}}`, limit))
	replacement := d.waitReplaced(t, before.UID)
	if got := replacement.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]; !got.Equal(resource.MustParse(limit)) {
		t.Errorf("memory limit of the new pod: got %s, want %s", got.String(), limit)
	}
}

func (d database) mustPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := d.pod(t.Context())
	if err != nil {
		t.Fatalf("find the pod of %s: %v", d.name, err)
	}
	return pod
}

// delete deletes the resource and waits until all its children but those in kept,
// as kind/name, are gone.
func (d database) delete(t *testing.T, kept ...string) {
	t.Helper()
	if err := d.client().Delete(t.Context(), d.name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", d.name, err)
	}
	d.waitGone(t, kept...)
}

// retained is what stays of a durable database, as kind/name.
func (d database) retained() []string {
	return []string{
		"ConfigMap/" + d.stem() + "-topology", "PersistentVolumeClaim/data-" + d.stem() + "-0",
		"Secret/" + d.stem() + "-admin", "Secret/" + d.stem() + "-auth",
	}
}

// waitGone waits until nothing is left but what is in kept.
func (d database) waitGone(t *testing.T, kept ...string) {
	t.Helper()
	eventually(t, patience, d.name+" gone", func(ctx context.Context) error {
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
		"PodDisruptionBudget":   func() (any, error) { return env.kube.PolicyV1().PodDisruptionBudgets(d.namespace).List(ctx, selector) },
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
