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

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestDatabasesGoOnWithoutTheOperator takes the operator away, and with it the
// members' servers and pods. It runs beside no other test: all have the same
// operator.
func TestDatabasesGoOnWithoutTheOperator(t *testing.T) {
	n := newNode(t)
	var lives []life
	var groups []*orphaned
	for _, e := range enginesOnce() {
		namespace := newNamespace(t)
		lives = append(lives, beginIn(t, namespace, e, "orders", durable), beginIn(t, namespace, e, "cache"))
		groups = append(groups, orphan(t, beginReplicated(t, e, 3, v1alpha1.ReplicationModeSync)))
	}
	for _, l := range lives {
		l.app.write(t, "value")
	}
	replicas := scaleOperator(t, 0)
	t.Cleanup(func() {
		if t.Failed() {
			scaleOperatorBack(t, replicas)
		}
	})
	for _, l := range lives {
		l.goesOn(t, n)
	}
	for _, group := range groups {
		group.goesOn(t, n)
	}
	if env.isFull {
		<-time.After(time.Minute)
	}
	scaleOperatorBack(t, replicas)
	for _, group := range groups {
		group.goesOnWithAnother(t)
	}
	for _, l := range lives {
		l.waitReady(t)
		if !l.isDurable() {
			// Its pod went while nobody was there to see it.
			l.expectEvent(t, v1alpha1.EventEphemeralDataLost)
			l.app.expect(t, "with the operator back", "")
		}
		l.app.write(t, "back")
		l.app.expect(t, "with the operator back", "back")
	}
	lives[0].changeMemory(t)
}

func (l life) isDurable() bool { return l.name == "orders" }

// goesOn kills the server, which goes on with its data and takes writes, and
// then the pod. With the data gone, it waits for the operator.
func (l life) goesOn(t *testing.T, n node) {
	t.Helper()
	before := l.mustPod(t)
	n.kill(t, before)
	l.app.expect(t, "without the operator, after a kill", "value")
	l.app.write(t, "without")
	l.expectRestarted(t, before.UID, 1)
	if err := env.kube.CoreV1().Pods(l.namespace).Delete(t.Context(), before.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "another pod", func(ctx context.Context) error {
		pod, err := l.pod(ctx)
		if err == nil && pod.UID == before.UID {
			err = errors.New("it is still the old one")
		}
		return err
	})
	if l.isDurable() {
		l.app.expect(t, "without the operator, in another pod", "without")
		l.app.write(t, "still without")
	}
}

// orphaned is a database of several members, whose writer goes on.
type orphaned struct {
	life
	w writer
	// primary is who was the primary before.
	primary string
	// rejoin ends that it is cut off.
	rejoin func()
}

func orphan(t *testing.T, l life) *orphaned {
	t.Helper()
	l.watchLabels(t)
	return &orphaned{life: l, w: newWriter(t, l.database, l.app), primary: l.primary(t).Name, rejoin: func() {}}
}

// goesOn kills each member's server in turn, which comes back in its role. Then it
// cuts the primary off, in whose place nobody comes.
func (f *orphaned) goesOn(t *testing.T, n node) {
	t.Helper()
	for _, member := range f.membersUpTo(3) {
		before := f.podOf(t, member)
		n.kill(t, before)
		eventually(t, patience, member+" started again", func(ctx context.Context) error {
			pod, err := env.kube.CoreV1().Pods(f.namespace).Get(ctx, member, metav1.GetOptions{})
			if err != nil {
				return err
			}
			status := pod.Status.ContainerStatuses[0]
			if pod.UID != before.UID || status.RestartCount != before.Status.ContainerStatuses[0].RestartCount+1 || !status.Ready {
				return fmt.Errorf("pod %s was restarted %d times, ready: %t", pod.UID, status.RestartCount, status.Ready)
			}
			return nil
		})
		f.w.goesOn(t, time.Now())
		f.w.expectRecords(t, f.stem()+"-ro")
	}
	f.rejoin = f.isolate(t, f.primary)
}

// goesOnWithAnother expects another primary soon after the operator is back.
func (f *orphaned) goesOnWithAnother(t *testing.T) {
	t.Helper()
	const bound = 30 * time.Second
	begun := time.Now()
	f.waitPrimaryOtherThan(t, f.primary)
	f.w.goesOn(t, begun)
	took := time.Since(begun)
	record(t, "an operator's start to writes of "+string(f.engine.name)+" without its primary", took)
	if took > bound {
		t.Errorf("it took %s", took)
	}
	f.rejoin()
	f.heals(t, f.w)
}

// scaleOperator sets the number of operators, waits until it is reached, and
// returns what it was.
func scaleOperator(t *testing.T, replicas int32) int32 {
	t.Helper()
	deployments := env.kube.AppsV1().Deployments(operatorNamespace)
	before, err := deployments.GetScale(t.Context(), "database-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: before.Name, Namespace: before.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if _, err := deployments.UpdateScale(t.Context(), "database-manager", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("scale the operator: %v", err)
	}
	waitForOperators(t, replicas, nil)
	return before.Spec.Replicas
}

// waitForOperators waits until just that many operators are there, all available
// and none of them of the old ones.
func waitForOperators(t *testing.T, replicas int32, old []string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d operators", replicas), func(ctx context.Context) error {
		operator, err := env.kube.AppsV1().Deployments(operatorNamespace).Get(ctx, "database-manager", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := operatorPods(ctx)
		if err != nil {
			return err
		}
		isOld := slices.ContainsFunc(pods, func(pod string) bool { return slices.Contains(old, pod) })
		if isOld || len(pods) != int(replicas) || operator.Status.AvailableReplicas != replicas {
			return fmt.Errorf("there are %v, %d available", pods, operator.Status.AvailableReplicas)
		}
		return nil
	})
}

func operatorPods(ctx context.Context) ([]string, error) {
	return listNames(func() (any, error) {
		return env.kube.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{})
	})
}

// restartOperator replaces every pod of the operator.
func restartOperator(t *testing.T) {
	t.Helper()
	old, err := operatorPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	patchOperator(t, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"e2e/restarted-at":%q}}}}}`, time.Now().Format(time.RFC3339Nano)))
	waitForOperators(t, int32(len(old)), old)
}

// killOperators deletes the operators' pods without grace.
func killOperators(t *testing.T) {
	t.Helper()
	pods, err := env.kube.CoreV1().Pods(operatorNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		deleteAtOnce(t, &pod)
	}
}

// scaleOperatorBack also works once the test has ended.
func scaleOperatorBack(t *testing.T, replicas int32) {
	t.Helper()
	patchOperator(t, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func patchOperator(t *testing.T, patch string) {
	t.Helper()
	_, err := env.kube.AppsV1().Deployments(operatorNamespace).Patch(context.Background(), "database-manager", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Errorf("change the operator's Deployment: %v", err)
	}
}

func logs(t *testing.T, namespace, pod string) string {
	t.Helper()
	content, err := env.kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("read the log of %s: %v", pod, err)
	}
	return string(content)
}
