// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// The sizes to keep below: of the CRD, and of all that is installed.
const (
	maxCRD     = 100 << 10
	maxInstall = 150 << 10
)

func TestManifestsAreSmall(t *testing.T) {
	for file, limit := range map[string]int64{"crds.yaml": maxCRD, "install.yaml": maxInstall} {
		info, err := os.Stat(filepath.Join("..", "..", "..", "..", "config", file))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() >= limit {
			t.Errorf("%s has %d bytes; it should stay below %d", file, info.Size(), limit)
		}
	}
}

// TestEveryFieldIsDescribedAndBounded keeps the promise that no list, map or
// text in the CRD is without a bound: the cost of a rule, and of an object in
// every cache, depends on it.
func TestEveryFieldIsDescribedAndBounded(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "config", "crd", "*.yaml"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("found the CRDs %v (%v), want two", paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { checkSchema(t, path) })
	}
}

func checkSchema(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema node `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatalf("read the CRD: %v", err)
	}
	for _, version := range crd.Spec.Versions {
		properties := version.Schema.OpenAPIV3Schema.Properties
		for _, name := range []string{"spec", "status"} {
			for _, complaint := range properties[name].complaints(name) {
				t.Error(complaint)
			}
		}
	}
}

func TestTheBoundsRuleFindsWhatIsUnbounded(t *testing.T) {
	for sentence, row := range map[string]struct {
		schema string
		wants  int
	}{
		"a bounded text":                 {`{description: d, type: string, maxLength: 1}`, 0},
		"a text with an enum":            {`{description: d, type: string, enum: [a]}`, 0},
		"a text with a format":           {`{description: d, type: string, format: date-time}`, 0},
		"an unbounded text":              {`{description: d, type: string}`, 1},
		"a text without a description":   {`{type: string, maxLength: 1}`, 1},
		"an unbounded quantity":          {`{description: d, x-kubernetes-int-or-string: true}`, 1},
		"an unbounded list":              {`{description: d, type: array, items: {type: integer}}`, 1},
		"a list of unbounded texts":      {`{description: d, type: array, maxItems: 1, items: {type: string}}`, 1},
		"an unbounded map":               {`{description: d, type: object, additionalProperties: {type: integer}}`, 1},
		"an unbounded text in an object": {`{description: d, type: object, properties: {a: {description: d, type: string}}}`, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			var n node
			if err := yaml.UnmarshalStrict([]byte(row.schema), &n); err != nil {
				t.Fatal(err)
			}
			if got := n.complaints("x"); len(got) != row.wants {
				t.Errorf("got %q, want %d complaints", got, row.wants)
			}
		})
	}
}

// node is the part of a schema that bounds are written in.
type node struct {
	Description          string          `json:"description"`
	Type                 string          `json:"type"`
	Format               string          `json:"format"`
	Enum                 []any           `json:"enum"`
	MaxLength            *int            `json:"maxLength"`
	MaxItems             *int            `json:"maxItems"`
	MaxProperties        *int            `json:"maxProperties"`
	IntOrString          bool            `json:"x-kubernetes-int-or-string"`
	Items                *node           `json:"items"`
	Properties           map[string]node `json:"properties"`
	AdditionalProperties *node           `json:"additionalProperties"`
}

// complaints returns what is missing at or below a field.
func (n node) complaints(path string) []string {
	var found []string
	isFreeText := n.Type == "string" && n.Enum == nil && n.Format == ""
	if (isFreeText || n.IntOrString) && n.MaxLength == nil {
		found = append(found, path+" has no maxLength")
	}
	if n.Items != nil {
		if n.MaxItems == nil {
			found = append(found, path+" has no maxItems")
		}
		found = append(found, n.Items.withDescription().complaints(path+"[]")...)
	}
	if n.AdditionalProperties != nil {
		if n.MaxProperties == nil {
			found = append(found, path+" has no maxProperties")
		}
		found = append(found, n.AdditionalProperties.withDescription().complaints(path+"{}")...)
	}
	if n.Description == "" {
		found = append(found, path+" has no description")
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		found = append(found, n.Properties[name].complaints(fmt.Sprintf("%s.%s", path, name))...)
	}
	return found
}

// withDescription excuses the elements of lists and maps: the list has one.
func (n node) withDescription() node {
	n.Description = "described by the list or map"
	return n
}
