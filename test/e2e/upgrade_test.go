//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// upgraded is how many databases there are while the operator is upgraded.
const upgraded = 20

// TestTheNextBuildTouchesNoDatabase has the operator's next build, which renders
// new databases in another form, take over those that this build has made. One
// adopts the new form when it is asked to. It runs beside no other test: all have
// the same operator.
func TestTheNextBuildTouchesNoDatabase(t *testing.T) {
	namespace := newNamespace(t)
	databases := createCrowd(t, namespace, upgraded)
	before, pods := allVersions(t, namespace), podsOf(t, namespace)

	restarted := time.Now()
	image := setOperatorImage(t, env.nextImage)
	t.Cleanup(func() {
		if t.Failed() {
			setOperatorImage(t, image)
		}
	})
	other := expectUntouched(t, namespace, before, restarted, "after an upgrade of the operator")
	if got := other.formOfTemplate(t); got != "2" {
		t.Errorf("a database that the next build makes has the form %s, want 2", got)
	}

	for _, d := range databases[:2] {
		if got := d.formOfTemplate(t); got != "1" {
			t.Errorf("%s has the form %s, want 1", d.name, got)
		}
		old := d.mustPod(t)
		d.patch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:"2"}}}`, v1alpha1.AnnotationAdoptTemplate))
		eventually(t, 3*patience, "another pod of "+d.name, func(ctx context.Context) error { return d.isReplaced(ctx, old) })
		d.waitReady(t)
		if got := d.formOfTemplate(t); got != "2" {
			t.Errorf("%s was asked to adopt the form 2, and has %s", d.name, got)
		}
	}
	awaitCalm(t)
	adopted := podsOf(t, namespace)
	for name, uid := range pods {
		isAsked := strings.HasPrefix(name, "resting-0-") || strings.HasPrefix(name, "resting-1-")
		if !isAsked && adopted[name] != uid {
			t.Errorf("%s is another pod since others adopted a form", name)
		}
	}
	// The way back leaves alone what it doesn't know, and all others too.
	setOperatorImage(t, image)
	databases[0].waitFor(t, patience, v1alpha1.ReasonTemplateUnknown)
	awaitCalm(t)
	if back := podsOf(t, namespace); !maps.Equal(back, adopted) {
		t.Errorf("on the way back the pods are %v, and were %v", back, adopted)
	}
}

// podsOf returns the UIDs of the pods of a namespace, by name.
func podsOf(t *testing.T, namespace string) map[string]types.UID {
	t.Helper()
	listed, err := env.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]types.UID{}
	for _, pod := range listed.Items {
		pods[pod.Name] = pod.UID
	}
	return pods
}

// setOperatorImage has the operator run another image, and returns the one before.
func setOperatorImage(t *testing.T, image string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	operator, err := env.kube.AppsV1().Deployments(operatorNamespace).Get(ctx, "database-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := operatorPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	container := operator.Spec.Template.Spec.Containers[0]
	patchOperator(t, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, container.Name, image))
	if t.Context().Err() == nil {
		waitForOperators(t, int32(len(old)), old)
	}
	return container.Image
}

// formOfTemplate is the form of the pod template that the workload records.
func (d database) formOfTemplate(t *testing.T) string {
	t.Helper()
	var workload metav1.Object
	var err error
	workload, err = env.kube.AppsV1().StatefulSets(d.namespace).Get(t.Context(), d.stem(), metav1.GetOptions{})
	if err != nil {
		if workload, err = env.kube.AppsV1().Deployments(d.namespace).Get(t.Context(), d.stem(), metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return workload.GetAnnotations()[v1alpha1.AnnotationTemplateVersion]
}

// isReplaced tells whether the member is another pod than it was, of the next form.
func (d database) isReplaced(ctx context.Context, old *corev1.Pod) error {
	pod, err := d.pod(ctx)
	if err != nil {
		return err
	}
	grace := *pod.Spec.TerminationGracePeriodSeconds
	if pod.UID == old.UID || grace <= *old.Spec.TerminationGracePeriodSeconds {
		return fmt.Errorf("it is %s, with %d s to stop", pod.UID, grace)
	}
	return nil
}
