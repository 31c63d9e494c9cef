// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const head = "spec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n        properties:\n          spec:\n            "

func read(t *testing.T, schema string) (map[string]Field, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	return Spec(file)
}

func TestEveryFieldIsFound(t *testing.T) {
	fields, err := read(t, head+`{required: [name], properties: {
		name: {type: string, maxLength: 7},
		labels: {type: object, maxProperties: 2, additionalProperties: {type: string, maxLength: 3}},
		size: {x-kubernetes-int-or-string: true},
		words: {type: array, maxItems: 4, items: {type: string}},
		from: {type: array, items: {type: object, required: [cidr], properties: {cidr: {type: string}, deep: {type: object, properties: {ready: {type: boolean}}}}}},
	}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"from.cidr", "from.deep.ready", "labels", "name", "size", "words"}
	if got := Leaves(fields); !slices.Equal(got, want) {
		t.Errorf("the leaves are %v, want %v", got, want)
	}
	for path, want := range map[string]bool{"name": true, "labels": false, "from": false, "from.cidr": true, "from.deep": false} {
		if field, exists := fields[path]; !exists || field.IsRequired != want {
			t.Errorf("%s: it exists: %t, it is required: %t, want %t", path, exists, field.IsRequired, want)
		}
	}
	if got := fields["labels"].Schema; *got.MaxProperties != 2 || *got.AdditionalProperties.MaxLength != 3 || !fields["size"].Schema.IsQuantity || *fields["words"].Schema.MaxItems != 4 {
		t.Errorf("bounds are lost: %+v", fields)
	}
}

func TestWhatCantBeWalkedIsRefused(t *testing.T) {
	for sentence, row := range map[string][2]string{
		"an object without a schema":  {head + `{properties: {a: {type: object}}}`, "the field a"},
		"unknown fields":              {head + `{properties: {a: {type: object, properties: {b: {type: string}}, x-kubernetes-preserve-unknown-fields: true}}}`, "the field a"},
		"a map of objects":            {head + `{properties: {a: {type: object, additionalProperties: {properties: {b: {type: string}}}}}}`, "the field a"},
		"no version":                  {"spec: {}", "0 versions"},
		"no spec":                     {"spec: {versions: [{}]}", "no spec"},
		"what is no YAML":             {"\t", "read the CRD"},
		"one of them deep in another": {head + `{properties: {a: {properties: {b: {type: object}}}}}`, "the field a.b"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := read(t, row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
				t.Errorf("got %v, want an error with %q", err, row[1])
			}
		})
	}
	if _, err := Spec("nowhere.yaml"); err == nil {
		t.Error("a file that doesn't exist is read")
	}
}
