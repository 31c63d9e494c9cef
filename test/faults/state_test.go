//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// observed are the resources that make up a namespace's state. Pods aren't among
// them: their names and their number in a moment are another controller's.
func observed() []schema.GroupVersionResource {
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	return []schema.GroupVersionResource{
		core.WithResource("services"), core.WithResource("secrets"), core.WithResource("configmaps"),
		core.WithResource("persistentvolumeclaims"),
		apps.WithResource("deployments"), apps.WithResource("statefulsets"),
	}
}

var (
	uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// deployed is the name of a Deployment's pod; port and address are a Service's;
	// moment is a point in time.
	deployed = regexp.MustCompile(`db-[0-9a-z]{6,10}-[0-9a-z]{5}\b`)
	port     = regexp.MustCompile(`"nodePort": \d+`)
	address  = regexp.MustCompile(`10\.96\.\d+\.\d+`)
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// stateOf returns what a namespace holds, by kind and name, without what differs
// from one run to the next for good reasons: identities, times, addresses,
// passwords, and counters.
func stateOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	client, err := dynamic.NewForConfig(env.config)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, resource := range observed() {
		list, err := client.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list %s: %v", resource.Resource, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, isObject := item.(*unstructured.Unstructured)
			if !isObject {
				t.Fatalf("the dynamic client lists a %T", item)
			}
			if object.GetName() == "kube-root-ca.crt" {
				return nil
			}
			state[object.GetKind()+"/"+object.GetName()] = mask(t, object, namespace)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return state
}

func mask(t *testing.T, object *unstructured.Unstructured, namespace string) string {
	t.Helper()
	for _, path := range [][]string{
		{"metadata", "resourceVersion"},
		{"metadata", "generation"},
		{"metadata", "creationTimestamp"},
		{"metadata", "managedFields"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		{"status"},
		{"metadata", "annotations", v1alpha1.AnnotationIntentHash}, // it covers the owner's UID
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	// What the volumes' controller notes depends on who saw the claim first.
	if annotations, _, _ := unstructured.NestedMap(object.Object, "metadata", "annotations"); annotations != nil {
		maps.DeleteFunc(annotations, func(key string, _ any) bool {
			return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.")
		})
		if err := unstructured.SetNestedMap(object.Object, annotations, "metadata", "annotations"); err != nil {
			t.Fatal(err)
		}
	}
	if data, isSecret := object.Object["data"].(map[string]any); isSecret && object.GetKind() == "Secret" {
		for key := range data {
			data[key] = "…"
		}
	}
	encoded, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(encoded), namespace, "NAMESPACE")
	text = uid.ReplaceAllString(text, "UID")
	text = deployed.ReplaceAllString(text, "POD")
	text = port.ReplaceAllString(text, `"nodePort": PORT`)
	text = address.ReplaceAllString(text, "ADDRESS")
	return moment.ReplaceAllString(text, "MOMENT")
}
