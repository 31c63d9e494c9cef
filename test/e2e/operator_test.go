//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestADatabaseGoesOnWithoutTheOperator takes the operator away, and with it a
// member's pod. It runs beside no other test: all have the same operator.
func TestADatabaseGoesOnWithoutTheOperator(t *testing.T) {
	d := database{namespace: newNamespace(t), name: "orders"}
	d.create(t, &v1alpha1.StorageSpec{Size: resource.MustParse("128Mi")})
	app := newClient(t, d.namespace, d.waitReady(t).Status.SecretName)
	app.mustRedis(t, "set", "key", "value")
	before := d.mustPod(t)

	replicas := scaleOperator(t, 0)
	t.Cleanup(func() {
		if t.Failed() {
			scaleOperatorBack(t, replicas)
		}
	})
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("without the operator: got %q, want the value", got)
	}
	if err := env.kube.CoreV1().Pods(d.namespace).Delete(t.Context(), before.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "another pod", func(ctx context.Context) error {
		pod, err := d.pod(ctx)
		if err == nil && pod.UID == before.uid {
			err = errors.New("it is still the old one")
		}
		return err
	})
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("after a restart without the operator: got %q, want the value", got)
	}

	after := d.mustPod(t)
	scaleOperatorBack(t, replicas)
	d.changeMemory(t, "96Mi")
	if got := d.mustPod(t); got.uid == after.uid {
		t.Error("the operator that came back doesn't carry out a change")
	}
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("with the operator back: got %q, want the value", got)
	}
}

// podID tells one pod from the next of its name.
type podID struct {
	name string
	uid  types.UID
}

func (d database) mustPod(t *testing.T) podID {
	t.Helper()
	pod, err := d.pod(t.Context())
	if err != nil {
		t.Fatalf("find the pod of %s: %v", d.name, err)
	}
	return podID{pod.Name, pod.UID}
}

// scaleOperator sets the number of operators, waits until it is reached, and
// returns what it was.
func scaleOperator(t *testing.T, replicas int32) int32 {
	t.Helper()
	deployments := env.kube.AppsV1().Deployments("database-manager-system")
	before, err := deployments.GetScale(t.Context(), "database-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: before.Name, Namespace: before.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if _, err := deployments.UpdateScale(t.Context(), "database-manager", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("scale the operator: %v", err)
	}
	eventually(t, time.Minute, fmt.Sprintf("%d operators", replicas), func(ctx context.Context) error {
		pods, err := env.kube.CoreV1().Pods("database-manager-system").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		operator, err := deployments.Get(ctx, "database-manager", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != int(replicas) || operator.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%d pods, %d available", len(pods.Items), operator.Status.AvailableReplicas)
		}
		return nil
	})
	return before.Spec.Replicas
}

// scaleOperatorBack also works once the test has ended.
func scaleOperatorBack(t *testing.T, replicas int32) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := env.kube.AppsV1().Deployments("database-manager-system").Patch(context.Background(), "database-manager", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Errorf("scale the operator back: %v", err)
	}
}
