//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// repair is within what time a child has to be put back.
const repair = 10 * time.Second

// TestChildrenAreRestoredUnderARunningDatabase takes away and changes, one at a
// time, what belongs to a database, which runs on meanwhile, in the same pod.
func TestChildrenAreRestoredUnderARunningDatabase(t *testing.T) {
	t.Parallel()
	l := begin(t, anyEngine(), "orders", durable)
	l.app.write(t, "value")
	pod := l.mustPod(t)
	config := ""
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil {
			config = volume.ConfigMap.Name
		}
	}
	services, configs, secrets := coreResource("services"), coreResource("configmaps"), coreResource("secrets")
	statefulSets := appsv1.SchemeGroupVersion.WithResource("statefulsets")
	policies := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	for _, child := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{
		{services, l.stem()},
		{services, l.stem() + "-members"},
		{policies, l.stem()},
		{configs, config},
		{configs, l.stem() + "-topology"},
		{secrets, l.stem() + "-auth"},
		{secrets, l.stem() + "-admin"},
		{statefulSets, l.stem()},
	} {
		l.comesBack(t, child.resource, child.name)
	}
	l.isPutBack(t, services, `{"spec":{"ports":[{"name":"redis","port":7000}]}}`)
	l.isPutBack(t, policies, `{"spec":{"ingress":[]}}`)
	l.isPutBack(t, statefulSets, `{"spec":{"replicas":3}}`)
	l.losesLabelsOfItsClaim(t)
	l.losesAnOldConfig(t, configs, config)
	l.waitReady(t)
	l.app.expect(t, "after all that", "value")
	if after := l.mustPod(t); after.UID != pod.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod is another one, or was started again: %s", mustYAML(after.Status))
	}
}

func coreResource(name string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(name)
}

// losesLabelsOfItsClaim takes off the labels by which the claim is watched and
// found; without them no watch shows it.
func (l life) losesLabelsOfItsClaim(t *testing.T) {
	t.Helper()
	claims := env.kube.CoreV1().PersistentVolumeClaims(l.namespace)
	before, err := claims.Get(t.Context(), "data-"+l.stem()+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the claim: %v", err)
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null,%q:null}}}`, v1alpha1.LabelManagedBy, v1alpha1.LabelStem, v1alpha1.LabelOwnerUID)
	if _, err := claims.Patch(t.Context(), before.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("take labels off the claim: %v", err)
	}
	begun := time.Now()
	eventually(t, patience, "the labels of the claim put back", func(ctx context.Context) error {
		after, err := claims.Get(ctx, before.Name, metav1.GetOptions{})
		if err == nil && !maps.Equal(after.Labels, before.Labels) {
			err = fmt.Errorf("they are %v, and were %v", after.Labels, before.Labels)
		}
		return err
	})
	inTime(t, begun, "the claim")
}

// losesAnOldConfig makes a configuration that no member uses, as an older operator
// would have left it, and waits until it is gone.
func (l life) losesAnOldConfig(t *testing.T, configs schema.GroupVersionResource, current string) {
	t.Helper()
	client := env.dynamic.Resource(configs).Namespace(l.namespace)
	old, err := client.Get(t.Context(), current, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old.SetName(l.stem() + "-config-older")
	old.SetResourceVersion("")
	old.SetUID("")
	if _, err := client.Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatalf("make an older configuration: %v", err)
	}
	eventually(t, patience, "the older configuration gone", func(ctx context.Context) error {
		_, err := client.Get(ctx, old.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// comesBack deletes a child, and leaves its own children alone.
func (l life) comesBack(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	client := env.dynamic.Resource(resource).Namespace(l.namespace)
	before, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read %s %s: %v", resource.Resource, name, err)
	}
	orphan := metav1.DeletePropagationOrphan
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatalf("delete %s %s: %v", resource.Resource, name, err)
	}
	begun := time.Now()
	eventually(t, patience, resource.Resource+" "+name+" made again", func(ctx context.Context) error {
		after, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil && after.GetUID() == before.GetUID() {
			err = errors.New("it is still the old one")
		}
		return err
	})
	inTime(t, begun, resource.Resource+" "+name)
}

// isPutBack changes the child that has the database's stem as its name.
func (l life) isPutBack(t *testing.T, resource schema.GroupVersionResource, patch string) {
	t.Helper()
	client := env.dynamic.Resource(resource).Namespace(l.namespace)
	before, err := client.Get(t.Context(), l.stem(), metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the %s: %v", resource.Resource, err)
	}
	if _, err := client.Patch(t.Context(), l.stem(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("change the %s: %v", resource.Resource, err)
	}
	begun := time.Now()
	eventually(t, patience, resource.Resource+" put back", func(ctx context.Context) error {
		after, err := client.Get(ctx, l.stem(), metav1.GetOptions{})
		if err == nil && !equality.Semantic.DeepEqual(after.Object["spec"], before.Object["spec"]) {
			err = fmt.Errorf("it is %v, and was %v", after.Object["spec"], before.Object["spec"])
		}
		return err
	})
	inTime(t, begun, resource.Resource+" "+l.stem())
}

func inTime(t *testing.T, begun time.Time, what string) {
	t.Helper()
	if took := time.Since(begun); took > repair {
		t.Errorf("%s took %s to be restored, allowed are %s", what, took, repair)
	}
}
