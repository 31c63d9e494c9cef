//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// soon is within what time a status has to tell of what happened.
const soon = 15 * time.Second

// trouble is something wrong with a database, and what is to be said of it.
type trouble struct {
	engine engine
	// cause is part of the spec from the start, or, where there is a patch, what
	// is done to a database that is well. cure puts an end to it.
	cause       func(*v1alpha1.DatabaseManagerSpec)
	patch, cure string
	reason      string
	message     string
	// bound is within what time it has to be told. Where others try several times
	// first, that is theirs.
	bound time.Duration
}

func withClass(name string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		durable(spec)
		spec.Storage.StorageClassName = &name
	}
}

func withImage(image string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		durable(spec)
		spec.Image = image
	}
}

func withCPUs(cpus string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Resources = &v1alpha1.ResourceRequirements{Requests: &v1alpha1.ResourceAmounts{CPU: new(resource.MustParse(cpus))}}
	}
}

// TestAStatusSaysWhatIsWrong has databases come into trouble, and out of it
// again by nothing but a corrected spec.
func TestAStatusSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const noCPUs, noImage = `{"spec":{"resources":null}}`, `{"spec":{"image":null}}`
	for sentence, row := range map[string]trouble{
		"a new one that no node has room for": {
			cause: withCPUs("1000"), cure: noCPUs, reason: v1alpha1.ReasonPodUnschedulable, message: "Insufficient cpu", bound: soon,
		},
		"one that is changed so that no node has room": {
			cause: durable, patch: `{"spec":{"resources":{"requests":{"cpu":"1000"}}}}`, cure: noCPUs,
			reason: v1alpha1.ReasonPodUnschedulable, message: "Insufficient cpu",
			// The member that is replaced goes on for 5 s, and then stops.
			bound: 2 * soon,
		},
		"one with a storage class that doesn't exist": {
			cause: withClass("no-such-class"), reason: v1alpha1.ReasonVolumePending, message: "PersistentVolumeClaim", bound: soon,
		},
		"a new one with an image that doesn't exist": {
			cause: withImage("redis:0.0.1"), cure: noImage, reason: v1alpha1.ReasonImagePullFailed, message: "redis:0.0.1", bound: patience,
		},
		"one that is changed to an image that doesn't exist": {
			cause: durable, patch: `{"spec":{"image":"redis:0.0.1"}}`, cure: noImage, reason: v1alpha1.ReasonImagePullFailed, message: "redis:0.0.1", bound: patience,
		},
		"a new one whose image has no such server": {
			cause: withImage("nginx:1.26"), cure: noImage, reason: v1alpha1.ReasonCrashLooping, message: "exit code 1", bound: patience,
		},
		"one that is changed to another engine's image": {
			cause: durable, patch: `{"spec":{"image":"valkey/valkey:9.1"}}`, cure: noImage, reason: v1alpha1.ReasonCrashLooping, message: "exit code 1", bound: patience,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			row.engine = anyEngine()
			row.happen(t)
		})
	}
}

func (row trouble) happen(t *testing.T) {
	t.Helper()
	d := database{engine: row.engine, namespace: newNamespace(t), name: "orders"}
	d.create(t, row.cause)
	if row.patch != "" {
		d.waitReady(t)
		d.patch(t, row.patch)
	}
	wrong := d.waitFor(t, row.bound, row.reason)
	if said := message(wrong); !strings.Contains(said, row.message) {
		t.Errorf("the message doesn't say %q: %s", row.message, said)
	}
	d.expectTroubled(t, row.reason)
	if row.cure == "" {
		return
	}
	d.patch(t, row.cure)
	well := d.waitReady(t)
	if well.Status.AvailableReplicas != 1 || meta.IsStatusConditionTrue(well.Status.Conditions, v1alpha1.ConditionDegraded) {
		t.Errorf("after the cure the status is %+v", well.Status)
	}
}

// expectTroubled checks what goes with every trouble.
func (d database) expectTroubled(t *testing.T, reason string) {
	t.Helper()
	eventually(t, soon, "the rest of the status", func(ctx context.Context) error {
		stored, err := d.get(ctx)
		if err != nil {
			return err
		}
		isTold := stored.Status.ObservedGeneration == stored.Generation && stored.Status.AvailableReplicas == 0
		for kind, status := range map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionDegraded: metav1.ConditionTrue, v1alpha1.ConditionProgressing: metav1.ConditionFalse,
		} {
			condition := meta.FindStatusCondition(stored.Status.Conditions, kind)
			isTold = isTold && condition != nil && condition.Status == status && condition.Reason == reason
		}
		if !isTold {
			return fmt.Errorf("of generation %d: %s", stored.Generation, mustYAML(stored.Status))
		}
		return nil
	})
}

// TestAServerThatHangsIsTold stops a server for a while, as a full disk would.
func TestAServerThatHangsIsTold(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			l := begin(t, e, "orders", durable)
			l.app.write(t, "value")
			pod := l.mustPod(t)
			n.signal(t, pod, "STOP")
			begun := time.Now()
			l.waitFor(t, soon, v1alpha1.ReasonEngineNotResponding)
			record(t, "a hanging server to its status", time.Since(begun))
			l.expectTroubled(t, v1alpha1.ReasonEngineNotResponding)
			n.signal(t, pod, "CONT")
			l.waitReady(t)
			l.app.expect(t, "after it hung", "value")
			if after := l.mustPod(t); after.UID != pod.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("it was started again, though it only hung: %s", mustYAML(after.Status))
			}
		})
	}
}

// TestAStatusFollowsADatabase holds which reasons are seen, and in which order,
// while a database is made, loses its pod, is changed, and loses its data.
func TestAStatusFollowsADatabase(t *testing.T) {
	t.Parallel()
	d := database{engine: anyEngine(), namespace: newNamespace(t), name: "cache"}
	seen := d.watchReasons(t)
	d.create(t)
	well := d.waitReady(t)
	for kind, want := range map[string]string{
		v1alpha1.ConditionReady:              v1alpha1.ReasonEphemeralStorage,
		v1alpha1.ConditionProgressing:        v1alpha1.ReasonUpToDate,
		v1alpha1.ConditionDegraded:           v1alpha1.ReasonAsExpected,
		v1alpha1.ConditionTransportEncrypted: v1alpha1.ReasonNotEncrypted,
	} {
		if condition := meta.FindStatusCondition(well.Status.Conditions, kind); condition == nil || condition.Reason != want {
			t.Errorf("%s is %+v, want the reason %s", kind, condition, want)
		}
	}
	seen.expect(t, v1alpha1.ReasonCreating, v1alpha1.ReasonEphemeralStorage)
	d.deletePod(t)
	seen.expect(t, v1alpha1.ReasonWaitingForMember, v1alpha1.ReasonEphemeralStorage)

	kept := database{engine: anyEngine(), namespace: d.namespace, name: "orders"}
	seen = kept.watchReasons(t)
	kept.create(t, durable)
	kept.waitReady(t)
	release := kept.forbidEvictions(t)
	kept.patch(t, `{"spec":{"resources":{"limits":{"memory":"768Mi"}}}}`)
	seen.expect(t, v1alpha1.ReasonCreating, v1alpha1.ReasonAvailable, v1alpha1.ReasonRolling)
	release()
	seen.expect(t, v1alpha1.ReasonWaitingForMember, v1alpha1.ReasonAvailable)
}

// forbidEvictions has a budget of the user's keep the members where they are, until it
// is released.
func (d database) forbidEvictions(t *testing.T) (release func()) {
	t.Helper()
	budgets := env.kube.PolicyV1().PodDisruptionBudgets(d.namespace)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "users-own"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelStem: d.stem()}},
		},
	}
	if _, err := budgets.Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatalf("make a disruption budget: %v", err)
	}
	return func() {
		if err := budgets.Delete(t.Context(), budget.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete the disruption budget: %v", err)
		}
	}
}

// reasons are those of the condition Ready that a watch has shown.
type reasons struct{ arrived chan string }

// watchReasons watches the database until the test ends.
func (d database) watchReasons(t *testing.T) reasons {
	t.Helper()
	watcher, err := d.client().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + d.name})
	if err != nil {
		t.Fatalf("watch %s: %v", d.name, err)
	}
	t.Cleanup(watcher.Stop)
	seen := reasons{make(chan string, 1000)}
	go seen.follow(watcher)
	return seen
}

func (r reasons) follow(watcher watch.Interface) {
	last := ""
	for event := range watcher.ResultChan() {
		d, isDatabase := event.Object.(*v1alpha1.DatabaseManager)
		if !isDatabase {
			continue
		}
		condition := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if condition != nil && condition.Reason != last {
			last = condition.Reason
			r.arrived <- last
		}
	}
}

// expect waits until the reasons have come in this order, whatever came between.
func (r reasons) expect(t *testing.T, wanted ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var came []string
	for rest := slices.Clone(wanted); len(rest) > 0; {
		select {
		case reason := <-r.arrived:
			came = append(came, reason)
			if reason == rest[0] {
				rest = rest[1:]
			}
		case <-ctx.Done():
			t.Fatalf("reasons were %v, want %v", came, wanted)
		}
	}
}
