//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flood is how many Foos there are; kubernetes/sample-controller needed 40 s for
// as many, and after a kill -9 a new one waited 37 s.
const flood = 200

// TestAFloodOfFoosIsServedInSeconds times what the flood takes, and what one new
// Foo waits for beside it, after the operator was killed.
func TestAFloodOfFoosIsServedInSeconds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	flags := []string{"--namespaces=" + namespace, "--leader-elect=false"}
	first := startOperator(t, nil, flags...)
	begun := time.Now()
	for i := range flood {
		makeFoo(t, namespace, fmt.Sprintf("foo-%d", i), 1)
	}
	made := time.Since(begun)
	t.Logf("the last of %d Foos was made after %s", flood, made.Round(time.Millisecond))
	eventually(t, 2*time.Minute, "a Deployment for each Foo", func(ctx context.Context) error {
		deployments, err := env.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(deployments.Items) < flood {
			err = fmt.Errorf("there are %d", len(deployments.Items))
		}
		return err
	})
	took := time.Since(begun)
	t.Logf("all Deployments were there after %s", took.Round(time.Millisecond))
	// However slow the machine is: the operator doesn't fall behind whoever makes
	// one Foo after the other. sample-controller needs seven times as long.
	if behind := took - made; behind > made {
		t.Errorf("the operator was done %s after the last Foo was made", behind)
	}

	first.signal(t, syscall.SIGKILL)
	first.awaitEnd(t, time.Second)
	killed := time.Now()
	startOperator(t, nil, flags...)
	createFoo(t, namespace)
	eventually(t, time.Minute, "a new Foo's Deployment", func(ctx context.Context) error {
		_, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
		return err
	})
	waited := time.Since(killed)
	t.Logf("after a kill -9 and a restart a new Foo waited %s", waited.Round(time.Millisecond))
	if waited > 10*time.Second {
		t.Errorf("a new Foo waited %s", waited)
	}
}
