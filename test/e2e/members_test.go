//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// replicated asks for a number of members, each with a volume.
func replicated(count int32, mode v1alpha1.ReplicationMode) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		durable(spec)
		spec.Replicas = &count
		if mode != "" {
			spec.Replication = &v1alpha1.ReplicationSpec{Mode: mode}
		}
	}
}

func (d database) member(ordinal int) string { return fmt.Sprintf("%s-%d", d.stem(), ordinal) }

func (d database) membersUpTo(count int) []string {
	var names []string
	for ordinal := range count {
		names = append(names, d.member(ordinal))
	}
	return names
}

// beginReplicated makes a database of several members, with an application that
// is logged in, and waits until it is whole.
func beginReplicated(t *testing.T, e engine, count int32, mode v1alpha1.ReplicationMode) life {
	t.Helper()
	namespace := newNamespace(t)
	l := life{database: database{engine: e, namespace: namespace, name: "orders"}, app: newClient(t, namespace, e)}
	begun := time.Now()
	l.create(t, replicated(count, mode))
	l.app.login(t, l.credentials(t))
	l.waitWhole(t, int(count))
	record(t, fmt.Sprintf("apply to %d members of %s that replicate", count, e.name), time.Since(begun))
	return l
}

// waitWhole waits until that many members are there and in their roles, in the
// status and by their labels, and none of the pods of former.
func (d database) waitWhole(t *testing.T, count int, former ...types.UID) {
	t.Helper()
	eventually(t, 3*patience, fmt.Sprintf("%d members in their roles", count), func(ctx context.Context) error {
		return d.isWhole(ctx, count, former)
	})
}

func (d database) isWhole(ctx context.Context, count int, former []types.UID) error {
	stored, err := d.get(ctx)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonAvailable || ready.ObservedGeneration != stored.Generation {
		return fmt.Errorf("generation %d, Ready is %+v", stored.Generation, ready)
	}
	said := map[string]string{}
	for _, member := range stored.Status.Members {
		said[member.Name] = string(member.Role)
	}
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	labelled := map[string]string{}
	for name, pod := range pods {
		labelled[name] = pod.Labels[v1alpha1.LabelRole]
		if slices.Contains(former, pod.UID) {
			return fmt.Errorf("pod %s is still the former one", name)
		}
	}
	wanted := map[string]string{}
	for _, name := range d.membersUpTo(count) {
		wanted[name] = string(v1alpha1.MemberRoleReplica)
	}
	wanted[stored.Status.CurrentPrimary] = string(v1alpha1.MemberRolePrimary)
	if !maps.Equal(said, wanted) || int(stored.Status.AvailableReplicas) != count {
		return fmt.Errorf("%d are available, and the members are %v, want %v", stored.Status.AvailableReplicas, said, wanted)
	}
	// A single member has kept its label, or never had one: its Service asks for none.
	if count > 1 && !maps.Equal(labelled, wanted) {
		return fmt.Errorf("the labels are %v, want %v", labelled, wanted)
	}
	return nil
}

// pods are the members' pods by their names, those that are leaving included.
func (d database) pods(ctx context.Context) (map[string]*corev1.Pod, error) {
	list, err := env.kube.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + d.stem()})
	if err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

func (d database) podOf(t *testing.T, member string) *corev1.Pod {
	t.Helper()
	pod, err := env.kube.CoreV1().Pods(d.namespace).Get(t.Context(), member, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("find the member %s: %v", member, err)
	}
	return pod
}

// primary is the pod of the member that the status names.
func (d database) primary(t *testing.T) *corev1.Pod {
	t.Helper()
	stored, err := d.get(t.Context())
	if err != nil {
		t.Fatalf("read %s: %v", d.name, err)
	}
	return d.podOf(t, stored.Status.CurrentPrimary)
}

// deleteAtOnce deletes a pod as one does whose node is gone: its name is free at
// once, whatever becomes of its processes.
func deleteAtOnce(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if err := env.kube.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, options); err != nil {
		t.Fatalf("delete pod %s: %v", pod.Name, err)
	}
}

// labels follows who is labelled the primary.
type labels struct {
	mu      sync.Mutex
	primary map[string]bool
	faults  []string
}

// watchLabels watches the members' labels, and fails the test at its end if two
// were the primary's at one time.
func (d database) watchLabels(t *testing.T) {
	t.Helper()
	selector := metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + d.stem()}
	watcher, err := env.kube.CoreV1().Pods(d.namespace).Watch(t.Context(), selector)
	if err != nil {
		t.Fatalf("watch the members: %v", err)
	}
	seen, done := &labels{primary: map[string]bool{}}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			seen.add(event)
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-done
		for _, fault := range seen.faults {
			t.Error(fault)
		}
	})
}

func (l *labels) add(event watch.Event) {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.primary, pod.Name)
	if event.Type != watch.Deleted && pod.Labels[v1alpha1.LabelRole] == string(v1alpha1.MemberRolePrimary) {
		l.primary[pod.Name] = true
	}
	if len(l.primary) > 1 {
		l.faults = append(l.faults, fmt.Sprintf("labelled as the primary are %v at once", slices.Sorted(maps.Keys(l.primary))))
	}
}

// localcluster runs a command of the cluster under test, such as one that cuts a
// pod off.
func localcluster(ctx context.Context, arguments ...string) error {
	words := append(strings.Fields(env.localcluster), arguments...)
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, output)
	}
	return nil
}

// isolate cuts a member off, from everybody or from some addresses, until the
// function that it returns is called, or the test ends.
func (d database) isolate(t *testing.T, member string, addresses ...string) (rejoin func()) {
	t.Helper()
	pod := d.namespace + "/" + member
	command := []string{"isolate", pod}
	if len(addresses) > 0 {
		command = append(command, "--from", strings.Join(addresses, ","))
	}
	if err := localcluster(t.Context(), command...); err != nil {
		t.Fatal(err)
	}
	rejoin = sync.OnceFunc(func() {
		if err := localcluster(context.WithoutCancel(t.Context()), "rejoin", pod); err != nil {
			t.Error(err)
		}
	})
	return rejoin
}

// annotate sets an annotation of the resource; null takes it away.
func (d database) annotate(t *testing.T, key, value string) {
	t.Helper()
	d.patch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))
}

// waitPrimaryOtherThan waits until the status names another primary than a member.
func (d database) waitPrimaryOtherThan(t *testing.T, member string) string {
	t.Helper()
	var found string
	eventually(t, patience, "another primary than "+member, func(ctx context.Context) error {
		stored, err := d.get(ctx)
		if err != nil {
			return err
		}
		if found = stored.Status.CurrentPrimary; found == "" || found == member {
			return errors.Join(err, fmt.Errorf("it is %q", found))
		}
		return nil
	})
	return found
}
