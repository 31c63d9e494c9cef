//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/controller/foo"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// startFooController runs Foo's controller alone, with another renderer: an
// operator of another version.
func startFooController(t *testing.T, render foo.Renderer) (stop func()) {
	t.Helper()
	children := informers.NewSharedInformerFactoryWithOptions(env.kube, 0,
		informers.WithTweakListOptions(kit.SelectedList(labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}))))
	owners := externalversions.NewSharedInformerFactory(env.databases, 0)
	controller, err := foo.New(foo.Config{
		Kubernetes: env.kube,
		Foos:       env.databases,
		Children:   map[string]informers.SharedInformerFactory{metav1.NamespaceAll: children},
		Owners:     map[string]externalversions.SharedInformerFactory{metav1.NamespaceAll: owners},
		Render:     render,
		Recorder:   &events.FakeRecorder{},
		Metrics:    kit.NewMetrics(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	children.StartWithContext(ctx)
	owners.StartWithContext(ctx)
	if err := controller.WaitForCaches(ctx); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx, 2) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		children.Shutdown()
		owners.Shutdown()
	})
	t.Cleanup(stop)
	return stop
}

// saysMore renders what Render does and more: fields of every kind, in the
// object, its spec and its pods.
func saysMore(rendered *samplev1alpha1.Foo) *appsv1apply.DeploymentApplyConfiguration {
	more := foo.Render(rendered).
		WithLabels(map[string]string{"earlier": "yes"}).
		WithAnnotations(map[string]string{"example.com/earlier": "yes"})
	more.Spec.WithMinReadySeconds(7)
	more.Spec.Template.WithAnnotations(map[string]string{"example.com/earlier": "yes"})
	more.Spec.Template.Spec.WithNodeSelector(map[string]string{"disk": "ssd"})
	more.Spec.Template.Spec.Containers[0].WithEnv(corev1apply.EnvVar().WithName("EARLIER").WithValue("yes"))
	return more
}

// leftovers counts what saysMore says and Render doesn't.
func leftovers(deployment *appsv1.Deployment) int {
	pod := deployment.Spec.Template
	found := len(pod.Spec.NodeSelector) + len(pod.Spec.Containers[0].Env) + len(pod.Annotations)
	if deployment.Labels["earlier"] != "" {
		found++
	}
	if deployment.Annotations["example.com/earlier"] != "" {
		found++
	}
	if deployment.Spec.MinReadySeconds != 0 {
		found++
	}
	return found
}

// TestWhatAnEarlierIntentSetIsRemoved is what an upgrade of the operator does to
// a Deployment, made by POST or changed by an apply since: the fields that the
// renderer doesn't give any more go, also those that nobody would miss, and what
// others added stays.
func TestWhatAnEarlierIntentSetIsRemoved(t *testing.T) {
	for sentence, row := range map[string]struct{ isDown, isApplied bool }{
		"while the controller runs":                       {},
		"while the controller runs, after an apply":       {isApplied: true},
		"while the operator was down":                     {isDown: true},
		"while the operator was down, and after an apply": {isDown: true, isApplied: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			var saysLess atomic.Bool
			stop := startFooController(t, func(rendered *samplev1alpha1.Foo) *appsv1apply.DeploymentApplyConfiguration {
				if saysLess.Load() {
					return foo.Render(rendered)
				}
				return saysMore(rendered)
			})
			namespace := newNamespace(t)
			newFoo(t, namespace, "example-foo", "web")
			before := deploymentOf(t, namespace, "web", awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced))
			if row.isApplied {
				changeFoo(t, namespace, "example-foo", `{"replicas":3}`)
				awaitReplicas(t, namespace, "web", 3)
				awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
			}
			if found := leftovers(before); found != 6 {
				t.Fatalf("the earlier renderer set %d fields, want 6: %+v", found, before)
			}
			added := []byte(`{"metadata":{"labels":{"team":"shop"}},"spec":{"revisionHistoryLimit":3}}`)
			if _, err := env.kube.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.MergePatchType, added, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
				t.Fatalf("add to the Deployment: %v", err)
			}
			if row.isDown {
				stop()
				startOperator(t)
			} else {
				saysLess.Store(true)
				changeFoo(t, namespace, "example-foo", `{"replicas":2}`)
			}
			await(t, "nothing is left of it", func(ctx context.Context) error {
				deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
				switch {
				case err != nil:
					return err
				case leftovers(deployment) > 0:
					return fmt.Errorf("there is %+v", deployment)
				case deployment.UID != before.UID, deployment.Labels["team"] != "shop", *deployment.Spec.RevisionHistoryLimit != 3:
					t.Fatalf("what others added is gone: %+v", deployment)
				}
				return nil
			})
		})
	}
}
