// SPDX-License-Identifier: Apache-2.0

// Package crdschema reads the schema of a CustomResourceDefinition, for tests that
// hold every field of it to something. What users can write is what the schema
// says; the Go types are only what it was made from.
package crdschema

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Field is one field below spec.
type Field struct {
	// Path is where it stands below spec, as users write it, for example
	// "networkPolicy.from.ipBlock.cidr". The elements of a list have the path of the
	// list; the keys of a map aren't fields.
	Path string
	// IsLeaf is true for what holds a value, and no further fields. A map is one.
	IsLeaf bool
	// IsRequired is true if what it stands in can't be without it.
	IsRequired bool
	// Schema is what the API server holds a value to. That of a list of values, or
	// of objects, is the list's.
	Schema Schema
}

// Schema is the part of a schema that tells which values are in bounds.
type Schema struct {
	Type                   string
	Enum                   []any
	Minimum, Maximum       *float64
	MinLength, MaxLength   *int
	MinItems, MaxItems     *int
	MaxProperties          *int
	IsQuantity             bool `json:"x-kubernetes-int-or-string"`
	Items                  *Schema
	Properties             map[string]Schema
	AdditionalProperties   *Schema
	Required               []string
	PreservesUnknownFields bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// Spec returns the fields below spec of the only version of the CRD in a file, by
// path.
func Spec(file string) (map[string]Field, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a CRD: %w", err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema Schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return nil, fmt.Errorf("read the CRD %s: %w", file, err)
	}
	if count := len(definition.Spec.Versions); count != 1 {
		return nil, fmt.Errorf("the CRD %s has %d versions, and one is read", file, count)
	}
	spec, exists := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if !exists {
		return nil, fmt.Errorf("the CRD %s has no spec", file)
	}
	fields := map[string]Field{}
	if err := spec.addTo(fields, ""); err != nil {
		return nil, fmt.Errorf("the CRD %s: %w", file, err)
	}
	return fields, nil
}

// Leaves returns the paths of the fields that hold a value, in their order.
func Leaves(fields map[string]Field) []string {
	leaves := slices.Sorted(maps.Keys(fields))
	return slices.DeleteFunc(leaves, func(path string) bool { return !fields[path].IsLeaf })
}

// addTo adds the fields of an object that stands at path.
func (s Schema) addTo(fields map[string]Field, path string) error {
	for name, of := range s.Properties {
		field := Field{
			Path:       strings.TrimPrefix(path+"."+name, "."),
			IsRequired: slices.Contains(s.Required, name),
			Schema:     of,
		}
		inner := of
		if of.Items != nil {
			inner = *of.Items
		}
		field.IsLeaf = len(inner.Properties) == 0
		isOpen := inner.Type == "object" && field.IsLeaf && inner.AdditionalProperties == nil
		if isOpen || inner.PreservesUnknownFields || inner.AdditionalProperties != nil && len(inner.AdditionalProperties.Properties) > 0 {
			return fmt.Errorf("the field %s holds what its schema doesn't name, or a map of objects: say how its fields are found", field.Path)
		}
		fields[field.Path] = field
		if err := inner.addTo(fields, field.Path); err != nil {
			return err
		}
	}
	return nil
}
