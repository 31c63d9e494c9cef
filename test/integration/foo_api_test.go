//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// fooResource names the API of Foo for clients that know no types.
var fooResource = schema.GroupVersion(samplev1alpha1.GroupVersion).WithResource("foos")

// untypedFoo builds a Foo with the spec that a user might write, wrong types
// included; an empty text leaves the spec out.
func untypedFoo(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(samplev1alpha1.GroupVersion.String())
	object.SetKind("Foo")
	object.SetName(name)
	if spec == "" {
		return object
	}
	var fields any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("read the spec %s: %v", spec, err)
	}
	object.Object["spec"] = fields
	return object
}

// TestFooRefusals compares every message that a user may get from the API server
// with testdata/foo-admission.golden.
func TestFooRefusals(t *testing.T) {
	client := env.dynamic.Resource(fooResource).Namespace(newNamespace(t))
	messages := map[string]string{}
	for sentence, spec := range map[string]string{
		"replicas 0":                         `{deploymentName: a, replicas: 0}`,
		"replicas 11":                        `{deploymentName: a, replicas: 11}`,
		"replicas a text":                    `{deploymentName: a, replicas: five}`,
		"replicas a fraction":                `{deploymentName: a, replicas: 1.5}`,
		"deploymentName a number":            `{deploymentName: 7}`,
		"deploymentName with a capital":      `{deploymentName: Foo}`,
		"deploymentName with an underscore":  `{deploymentName: example_foo}`,
		"deploymentName ending in a dash":    `{deploymentName: example-}`,
		"deploymentName beginning with dot":  `{deploymentName: .example}`,
		"deploymentName with a line break":   `{deploymentName: "example\n"}`,
		"deploymentName of 243 characters":   `{deploymentName: ` + strings.Repeat("a", 243) + `}`,
		"deploymentName of 254 characters":   `{deploymentName: ` + strings.Repeat("a", 254) + `}`,
		"a field that doesn't exist":         `{deploymentName: a, image: nginx}`,
		"a status that comes with the spec":  `{deploymentName: a, status: {}}`,
		"several mistakes at once":           `{deploymentName: Foo, replicas: 0}`,
		"a spec that isn't an object at all": `[a]`,
	} {
		_, err := client.Create(t.Context(), untypedFoo(t, "example", spec), strict)
		messages["create: "+sentence] = refusal(t, sentence, err)
	}
	compareWithGolden(t, "foo-admission.golden", render(messages))
}

// TestFoosThatTheArticlesSchemaLetsIn are let in by ours too.
func TestFoosThatTheArticlesSchemaLetsIn(t *testing.T) {
	client := env.dynamic.Resource(fooResource).Namespace(newNamespace(t))
	for sentence, spec := range map[string]string{
		"the Foo of the articles":        `{deploymentName: example-foo, replicas: 5}`,
		"no spec at all":                 ``,
		"an empty spec":                  `{}`,
		"an empty name":                  `{deploymentName: ""}`,
		"no replicas":                    `{deploymentName: example-foo}`,
		"replicas that are null":         `{deploymentName: example-foo, replicas: null}`,
		"one pod":                        `{deploymentName: example-foo, replicas: 1}`,
		"ten pods":                       `{deploymentName: example-foo, replicas: 10}`,
		"a name with dots":               `{deploymentName: example.foo-7}`,
		"a name of 242 characters":       `{deploymentName: ` + strings.Repeat("a", 242) + `}`,
		"a name that begins with digits": `{deploymentName: 7foo}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			stored, err := client.Create(t.Context(), untypedFoo(t, "example", spec), strict)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if _, isSet, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", "replicas"); isSet && !strings.Contains(spec, "replicas: ") {
				t.Errorf("a default was stored: %v", stored.Object["spec"])
			}
			if err := client.Delete(t.Context(), "example", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the Foo: %v", err)
			}
		})
	}
}
