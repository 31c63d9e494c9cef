//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	typedv1alpha1 "coolops.cn/database-manager/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// collection is how long the garbage collector may take: it learns of a new kind
// every 30 s.
const collection = 90 * time.Second

func foosIn(namespace string) typedv1alpha1.FooInterface {
	return env.databases.SamplecontrollerV1alpha1().Foos(namespace)
}

// newFoo creates a Foo of five pods.
func newFoo(t *testing.T, namespace, name, deploymentName string) *samplev1alpha1.Foo {
	t.Helper()
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: new(int32(5))},
	}
	created, err := foosIn(namespace).Create(t.Context(), foo, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the Foo %s: %v", name, err)
	}
	return created
}

// changeFoo changes the spec of a Foo by a merge patch.
func changeFoo(t *testing.T, namespace, name, spec string) {
	t.Helper()
	if _, err := foosIn(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("change the Foo %s: %v", name, err)
	}
}

// awaitSynced waits until the condition Synced has this reason, for the current
// spec, and returns the Foo.
func awaitSynced(t *testing.T, namespace, name, reason string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitSyncedWithin(t, patience, namespace, name, reason)
}

func awaitSyncedWithin(t *testing.T, limit time.Duration, namespace, name, reason string) *samplev1alpha1.Foo {
	t.Helper()
	var foo *samplev1alpha1.Foo
	awaitWithin(t, limit, fmt.Sprintf("Synced of %s with the reason %s", name, reason), func(ctx context.Context) (err error) {
		if foo, err = foosIn(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionSynced)
		if condition == nil || condition.ObservedGeneration != foo.Generation || condition.Reason != reason {
			return fmt.Errorf("it is %v", foo.Status.Conditions)
		}
		return nil
	})
	if len(foo.Status.Conditions) != 1 {
		t.Errorf("%s has the conditions %v, want one", name, foo.Status.Conditions)
	}
	return foo
}

// deploymentOf waits until a Foo has its Deployment, and returns it.
func deploymentOf(t *testing.T, namespace, name string, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	t.Helper()
	var deployment *appsv1.Deployment
	await(t, "the Deployment "+name, func(ctx context.Context) (err error) {
		if deployment, err = env.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !metav1.IsControlledBy(deployment, foo) {
			return fmt.Errorf("it belongs to %v", deployment.OwnerReferences)
		}
		return nil
	})
	return deployment
}

// fooEvents returns the reasons of the events about a Foo, as often as each came.
func fooEvents(ctx context.Context, namespace string, uid types.UID) ([]string, error) {
	list, err := env.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var reasons []string
	for _, event := range list.Items {
		count := int32(1)
		if event.Series != nil {
			count = event.Series.Count
		}
		for range count {
			if event.Regarding.UID == uid && event.Regarding.Kind == "Foo" {
				reasons = append(reasons, event.Type+" "+event.Reason)
			}
		}
	}
	return reasons, nil
}

// awaitFooEvents waits for the events about a Foo, in this order, and no other.
func awaitFooEvents(t *testing.T, foo *samplev1alpha1.Foo, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the events %v", want), func(ctx context.Context) error {
		got, err := fooEvents(ctx, foo.Namespace, foo.UID)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("there are %v", got)
		}
		return err
	})
}

// setReady sets every pod's condition Ready, as a kubelet would, and waits until
// the Deployment counts them.
func setReady(t *testing.T, namespace, deployment, status string, want int32) {
	t.Helper()
	await(t, fmt.Sprintf("%d available pods", want), func(ctx context.Context) error {
		pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			patch := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"` + status + `","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
			if _, err := env.kube.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
		}
		found, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err == nil && found.Status.AvailableReplicas != want {
			err = fmt.Errorf("there are %d", found.Status.AvailableReplicas)
		}
		return err
	})
}

func TestAFooIsGivenItsDeployment(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	foo := newFoo(t, namespace, "example-foo", "web")
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	deployment := deploymentOf(t, namespace, "web", foo)
	pod := deployment.Spec.Template
	labels := map[string]string{"app": "nginx", "controller": "example-foo"}
	if *deployment.Spec.Replicas != 5 || pod.Spec.Containers[0].Image != "nginx:latest" || len(pod.Labels) != len(labels) {
		t.Errorf("the Deployment is %+v", deployment.Spec)
	}
	for key, value := range labels {
		if deployment.Labels[key] != value || pod.Labels[key] != value || deployment.Spec.Selector.MatchLabels[key] != value {
			t.Errorf("the label %s isn't %s everywhere", key, value)
		}
	}
	if deployment.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		t.Errorf("the labels are %v", deployment.Labels)
	}
	awaitFooEvents(t, foo, "Normal Synced")

	setReady(t, namespace, "web", "True", 5)
	await(t, "five available pods in the status", func(ctx context.Context) error {
		return availableIs(ctx, namespace, 5)
	})
	setReady(t, namespace, "web", "False", 0)
	await(t, "no available pods in the status", func(ctx context.Context) error {
		return availableIs(ctx, namespace, 0)
	})
	operator.requests.awaitQuiet(t, time.Second)
	awaitFooEvents(t, foo, "Normal Synced")
}

func availableIs(ctx context.Context, namespace string, want int32) error {
	foo, err := foosIn(namespace).Get(ctx, "example-foo", metav1.GetOptions{})
	if err == nil && foo.Status.AvailableReplicas != want {
		err = fmt.Errorf("there are %d", foo.Status.AvailableReplicas)
	}
	return err
}

func TestASpecOfAFooIsFollowed(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "example-foo", "web")
	foo := awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	before := deploymentOf(t, namespace, "web", foo)

	for spec, want := range map[string]int32{`{"replicas":2}`: 2, `{"replicas":null}`: 1} {
		changeFoo(t, namespace, "example-foo", spec)
		await(t, "the pods that "+spec+" asks for", func(ctx context.Context) error {
			deployment, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
			if err == nil && (*deployment.Spec.Replicas != want || deployment.UID != before.UID) {
				err = fmt.Errorf("%s has %d", deployment.UID, *deployment.Spec.Replicas)
			}
			return err
		})
		awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	}

	changeFoo(t, namespace, "example-foo", `{"deploymentName":""}`)
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonInvalidSpec)
	deploymentOf(t, namespace, "web", foo)
	changeFoo(t, namespace, "example-foo", `{"deploymentName":"other"}`)
	awaitSynced(t, namespace, "example-foo", samplev1alpha1.ReasonSynced)
	deploymentOf(t, namespace, "other", foo)
	awaitGone(t, namespace, before)
	awaitFooEvents(t, foo, "Normal Synced", "Warning InvalidSpec", "Normal Synced")
}

// awaitGone waits until this very Deployment is gone.
func awaitGone(t *testing.T, namespace string, deployment *appsv1.Deployment) {
	t.Helper()
	awaitWithin(t, collection, "the Deployment "+deployment.Name+" goes", func(ctx context.Context) error {
		list, err := env.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return d.UID == deployment.UID }) {
			err = errors.New("it is still there")
		}
		return err
	})
}

func TestAFooThatSaysTooLittleIsReportedAndNotTriedAgain(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	for name, spec := range map[string]string{"no-spec": ``, "empty": `{}`, "no-name": `{deploymentName: "", replicas: 3}`, strings.Repeat("n", 64): `{deploymentName: web}`} {
		if _, err := env.dynamic.Resource(fooResource).Namespace(namespace).Create(t.Context(), untypedFoo(t, name, spec), strict); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
		foo := awaitSynced(t, namespace, name, samplev1alpha1.ReasonInvalidSpec)
		awaitFooEvents(t, foo, "Warning InvalidSpec")
	}
	operator.requests.awaitQuiet(t, time.Second)
	before := len(operator.requests.about(namespace, false))
	operator.requests.awaitQuiet(t, 3*time.Second)
	if after := operator.requests.about(namespace, false); len(after) != before {
		t.Errorf("it goes on trying: %v", after[before:])
	}
	if made := childNames(children(t, namespace)); len(made) > 0 {
		t.Errorf("made: %v", made)
	}
}

func TestAtRestAFooCostsNothing(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newFoo(t, namespace, "one", "web")
	awaitSynced(t, namespace, "one", samplev1alpha1.ReasonSynced)
	operator.requests.awaitQuiet(t, time.Second)
	got := operator.requests.about(namespace, false)
	foos, deployments := "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/"+namespace+"/foos/one", "/apis/apps/v1/namespaces/"+namespace+"/deployments"
	want := []string{
		"GET " + foos,
		"POST " + deployments + "?fieldManager=database-manager",
		"PATCH " + foos + "/status?fieldManager=database-manager-status&force=true",
		"POST /apis/events.k8s.io/v1/namespaces/" + namespace + "/events",
	}
	if !slices.Equal(got, want) {
		t.Errorf("a Foo costs %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	operator.requests.awaitQuiet(t, 5*time.Second)
	if later := operator.requests.about(namespace, false); len(later) != len(got) {
		t.Errorf("requests at rest: %v", later[len(got):])
	}

	operator.stop()
	restarted := startOperator(t)
	restarted.requests.awaitQuiet(t, 2*time.Second)
	if requests := restarted.requests.about(namespace, false); len(requests) > 0 {
		t.Errorf("requests at a restart: %v", requests)
	}
}
