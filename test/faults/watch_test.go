//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestWhatHappensWhileTheWatchesAreCutIsSeenAfterwards cuts every watch, deletes
// things behind the operator's back, and then answers that the versions which the
// watches would go on from are too old.
func TestWhatHappensWhileTheWatchesAreCutIsSeenAfterwards(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	o := startOperator(t, nil, "--namespaces="+namespace, "--leader-elect=false")
	createFoo(t, namespace)
	createDatabase(nil)(t, namespace)
	// The last that is to be said of the database: nothing is underway then, and
	// no write either.
	eventually(t, stepBound, "a Foo and a database", func(ctx context.Context) error {
		return errors.Join(hasReplicas(2)(ctx, namespace), isReady(ctx, namespace))
	})
	awaitCalm(t, o)
	before, cut := deploymentUID(t, namespace), time.Now()

	expired := map[string]bool{}
	o.setJudge(func(r request) verdict {
		if r.isResumed() && !expired[r.path] {
			expired[r.path] = true
			return expire
		}
		return pass
	})
	o.server.CloseClientConnections()
	deleteDatabase(t, namespace)
	eventually(t, stepBound, "the database's children gone", func(ctx context.Context) error { return hasNoWorkload(ctx, namespace) })
	if err := env.kube.AppsV1().Deployments(namespace).Delete(t.Context(), "example-foo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	changeFoo(t, namespace)
	if writes := o.seen(func(r request) bool { return r.isWork() && r.at.After(cut) && r.status != http.StatusNotFound }); len(writes) > 0 {
		t.Errorf("without its watches the operator wrote %v", writes)
	}
	close(o.released)

	eventually(t, stepBound, "the Foo's Deployment back, as it is asked for now", func(ctx context.Context) error {
		return hasReplicas(3)(ctx, namespace)
	})
	if after := deploymentUID(t, namespace); after == before {
		t.Error("the Deployment was never gone")
	}
	awaitCalm(t, o)
	if answers := o.seen(func(r request) bool { return r.isResumed() && r.status == http.StatusGone }); len(answers) < 5 {
		t.Errorf("only %d watches wanted to go on from where they were", len(answers))
	}
	if err := hasNoWorkload(t.Context(), namespace); err != nil {
		t.Errorf("the deleted database: %v", err)
	}
	workloads, err := env.kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelStem})
	if err != nil || len(workloads.Items) > 0 {
		t.Errorf("the deleted database has %d workloads (%v)", len(workloads.Items), err)
	}
	if o.hasEnded() {
		t.Errorf("the operator ended: %v", o.err)
	}
}

func deploymentUID(t *testing.T, namespace string) string {
	t.Helper()
	deployment, err := env.kube.AppsV1().Deployments(namespace).Get(t.Context(), "example-foo", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(deployment.UID)
}

// awaitCalm waits until the operator has written nothing for a while.
func awaitCalm(t *testing.T, o *operator) {
	t.Helper()
	eventually(t, stepBound, "calm", func(context.Context) error {
		writes := o.seen(request.isWork)
		if len(writes) > 0 && time.Since(writes[len(writes)-1].at) < 2*time.Second {
			return fmt.Errorf("the operator wrote %s a moment ago", writes[len(writes)-1])
		}
		return nil
	})
}
