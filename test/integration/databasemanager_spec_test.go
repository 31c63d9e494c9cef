//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestWhatIsTakenOutOfASpecGoesFromTheChildren changes a spec there and back,
// and expects the specs of the children to be what they were, or what they would
// have been.
func TestWhatIsTakenOutOfASpecGoesFromTheChildren(t *testing.T) {
	startOperator(t)
	admits := func(key string) func(*v1alpha1.DatabaseManagerSpec) {
		return func(spec *v1alpha1.DatabaseManagerSpec) {
			spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: []v1alpha1.NetworkPolicyPeer{{
				NamespaceSelector: &v1alpha1.LabelsSelector{MatchLabels: map[string]v1alpha1.LabelValue{key: "yes"}},
			}}}
		}
	}
	plain := func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.NetworkPolicy, spec.Resources, spec.Image, spec.Version = nil, nil, "", "8.0"
		withoutPlacement(spec)
	}
	for sentence, row := range map[string]struct {
		with, without func(*v1alpha1.DatabaseManagerSpec)
	}{
		"a peer": {admits("a"), plain},
		"a peer, of a policy that stays": {admits("a"), func(spec *v1alpha1.DatabaseManagerSpec) {
			spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{From: []v1alpha1.NetworkPolicyPeer{}}
		}},
		"a key of a peer's selector, for another": {admits("a"), admits("b")},
		"resources":                   {withLimits("1", "1Gi"), plain},
		"an image that doesn't exist": {func(spec *v1alpha1.DatabaseManagerSpec) { spec.Image = "redis:0.0.1" }, plain},
		"another version":             {func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "7.0" }, plain},
		"all of it, at once": {func(spec *v1alpha1.DatabaseManagerSpec) {
			admits("a")(spec)
			withLimits("1", "1Gi")(spec)
			spec.Image = "redis:0.0.1"
		}, plain},
		"where members run":                       {withPlacement, plain},
		"a key of a map, for another":             {withKeys("a"), withKeys("b")},
		"an entry of a list that stays":           {withEntries("a", "b"), withEntries("b")},
		"a load balancer, and annotations for it": {withBalancer, plain},
		"members, and how they replicate": {func(spec *v1alpha1.DatabaseManagerSpec) {
			several(spec)
			spec.Replication = &v1alpha1.ReplicationSpec{Mode: v1alpha1.ReplicationModeAsync}
		}, func(spec *v1alpha1.DatabaseManagerSpec) {
			plain(spec)
			spec.Replicas, spec.Replication = nil, nil
		}},
		"a version that isn't known": {func(spec *v1alpha1.DatabaseManagerSpec) { spec.Version = "0.9" }, plain},
	} {
		for when, first := range map[string]func(*v1alpha1.DatabaseManagerSpec){"set later": plain, "set at its creation": row.with} {
			t.Run(sentence+", "+when, func(t *testing.T) {
				t.Parallel()
				namespace, reference := newNamespace(t), newNamespace(t)
				newDatabase(t, reference, "orders", "db", durable, plain, row.without)
				awaitUnscheduled(t, reference, "orders")
				newDatabase(t, namespace, "orders", "db", durable, plain, first)
				awaitObserved(t, namespace)
				changeSpec(t, namespace, row.with)
				awaitObserved(t, namespace)
				changeSpec(t, namespace, row.without)
				awaitSpecs(t, namespace, specsOf(t, reference))
			})
		}
	}
}

// awaitSpecs waits until the specs of the children are as they should be.
func awaitSpecs(t *testing.T, namespace string, want map[string]string) {
	t.Helper()
	await(t, "the children are as if nothing had been", func(context.Context) error {
		got := specsOf(t, namespace)
		for name, spec := range want {
			if got[name] != spec {
				return fmt.Errorf("%s is\n%s\nwant\n%s", name, got[name], spec)
			}
		}
		return nil
	})
}

// awaitObserved waits until the status is one of the spec as it is.
func awaitObserved(t *testing.T, namespace string) {
	t.Helper()
	await(t, "the spec is acted upon", func(ctx context.Context) error {
		database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err == nil && database.Status.ObservedGeneration != database.Generation {
			err = fmt.Errorf("generation %d is acted upon, wanted is %d", database.Status.ObservedGeneration, database.Generation)
		}
		return err
	})
}

// specsOf returns the specs of the children that follow from the spec, and that
// of the member's pod, as text.
func specsOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	found := children(t, namespace)
	specs := map[string]string{}
	// The template of a StatefulSet's claims names their owner.
	for name, path := range map[string][]string{"NetworkPolicy db": {"spec"}, "StatefulSet db": {"spec", "template"}} {
		if found[name] == nil {
			continue
		}
		part, _, err := unstructured.NestedFieldNoCopy(found[name].Object, path...)
		if err != nil || part == nil {
			t.Fatalf("%s has no %v: %v", name, path, err)
		}
		// Members are told under which names they find each other.
		specs[name] = strings.ReplaceAll(textOf(t, part), "."+namespace+".svc", ".NAMESPACE.svc")
	}
	specs["Service db"] = serviceText(t, namespace)
	pod, err := env.kube.CoreV1().Pods(namespace).Get(t.Context(), "db-0", metav1.GetOptions{})
	if err != nil {
		// One that is being replaced.
		return specs
	}
	specs["Pod db-0"] = textOf(t, []any{pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Resources, pod.Annotations, pod.Spec.NodeSelector, pod.Spec.ImagePullSecrets})
	return specs
}

func textOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
