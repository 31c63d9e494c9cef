//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/test/e2e/audit"
)

// takeover is within what time another operator has to work.
const takeover = 20 * time.Second

// TestAnotherOperatorTakesOverFromALeaderThatDies kills the one of the operators
// that works, in two ways, while a database is changed all the time, and looks at
// who wrote what. It runs beside no other test: all have the same operator.
func TestAnotherOperatorTakesOverFromALeaderThatDies(t *testing.T) {
	n := newNode(t)
	d := database{engine: anyEngine(), namespace: newNamespace(t), name: "orders"}
	d.create(t)
	d.waitReady(t)
	replicas := scaleOperator(t, 2)
	t.Cleanup(func() { scaleOperatorBack(t, replicas) })
	begun, changed := time.Now(), 0
	led := []string{leader(t)}
	for _, death := range []struct {
		how  string
		kill func(*corev1.Pod)
	}{
		{"its process was killed", func(pod *corev1.Pod) { n.kill(t, pod) }},
		{"its pod was deleted without grace", func(pod *corev1.Pod) { deleteAtOnce(t, pod) }},
	} {
		former := leader(t)
		pod, err := env.kube.CoreV1().Pods(operatorNamespace).Get(t.Context(), podOf(former), metav1.GetOptions{})
		if err != nil {
			t.Fatalf("find the leader: %v", err)
		}
		d.isActedUpon(t, &changed, "")
		died := time.Now()
		death.kill(pod)
		d.isActedUpon(t, &changed, former)
		took := time.Since(died)
		record(t, "another operator works after "+death.how, took)
		if took > takeover {
			t.Errorf("after %s it took %s", death.how, took)
		}
		led = append(led, leader(t))
		waitForOperators(t, 2, nil)
	}
	checkWriters(t, d.namespace, begun, led)
	d.waitReady(t)
}

// holder is the process that has the lease; empty if none has.
func holder(ctx context.Context) (string, error) {
	lease, err := env.kube.CoordinationV1().Leases(operatorNamespace).Get(ctx, "database-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// podOf is the name of the pod in which a holder of the lease runs, or ran.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// leader waits until there is one.
func leader(t *testing.T) string {
	t.Helper()
	var found string
	eventually(t, patience, "a leader", func(ctx context.Context) (err error) {
		if found, err = holder(ctx); err == nil && found == "" {
			err = errors.New("nobody holds the lease")
		}
		return err
	})
	return found
}

// isActedUpon changes the database over and over, and waits until one of the
// changes shows that was made while another than former led.
func (d database) isActedUpon(t *testing.T, changed *int, former string) {
	t.Helper()
	const annotation = "example.com/change"
	first := 0
	eventually(t, patience, "an operator that works", func(ctx context.Context) error {
		current, err := holder(ctx)
		if err != nil {
			return err
		}
		*changed++
		patch := fmt.Sprintf(`{"spec":{"service":{"annotations":{%q:"%d"}}}}`, annotation, *changed)
		if _, err := d.client().Patch(ctx, d.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("change the database: %w", err)
		}
		if first == 0 && current != "" && current != former {
			first = *changed
		}
		service, err := env.kube.CoreV1().Services(d.namespace).Get(ctx, d.stem(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		shown, err := strconv.Atoi(service.Annotations[annotation])
		if err != nil || first == 0 || shown < first {
			return fmt.Errorf("%s leads, and of %d changes the Service shows %q", current, *changed, service.Annotations[annotation])
		}
		return nil
	})
}

// checkWriters holds what the operators wrote to who led: one after another, and
// none beside another. The lease is everybody's.
func checkWriters(t *testing.T, namespace string, since time.Time, led []string) {
	t.Helper()
	var writes []audit.Entry
	for _, entry := range operatorRequests(t, since) {
		isAboutState := entry.IsWrite() && entry.ObjectRef.Resource != "leases" && entry.ObjectRef.Resource != "events"
		if isAboutState && entry.ObjectRef.Namespace == namespace && entry.ResponseStatus.Code < http.StatusBadRequest {
			writes = append(writes, entry)
		}
	}
	slices.SortFunc(writes, func(a, b audit.Entry) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	var writers, leaders []string
	for _, write := range writes {
		writers = append(writers, write.User.Pod())
	}
	for _, holder := range led {
		leaders = append(leaders, podOf(holder))
	}
	if got := slices.Compact(slices.Clone(writers)); !slices.Equal(got, leaders) {
		t.Errorf("of %d writes in their order the pods are %v, and those that led %v", len(writes), got, leaders)
	}
}
