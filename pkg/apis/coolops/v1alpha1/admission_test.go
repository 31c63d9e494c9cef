// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// repository is the path of the repository's root, as seen from this package.
var repository = filepath.Join("..", "..", "..", "..")

// TestEveryRefusalIsInAGoldenFile keeps the promise that a person has read what
// the API server says to each mistake: the golden files of test/integration,
// which are what it said, have a line for each rule of the schema.
func TestEveryRefusalIsInAGoldenFile(t *testing.T) {
	for crd, golden := range map[string]string{
		"coolops.cn_databasemanagers.yaml":  "admission.golden",
		"samplecontroller.k8s.io_foos.yaml": "foo-admission.golden",
	} {
		t.Run(golden, func(t *testing.T) {
			said := readRefusals(t, filepath.Join(repository, "test", "integration", "testdata", golden))
			for _, rule := range readRules(t, filepath.Join(repository, "config", "crd", crd)) {
				if !rule.isIn(said) {
					t.Errorf("no line in %s is about %s: add a row to test/integration that breaks this rule, and run it with -update", golden, rule)
				}
			}
		})
	}
}

// refusal is one line of a golden file: which field it is about, and what is
// wrong with it.
type refusal struct{ field, text string }

// index is what a place in a list, or a key of a map, looks like in a field's path.
var index = regexp.MustCompile(`\[[^]]*\]`)

func readRefusals(t *testing.T, path string) []refusal {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []refusal
	for line := range strings.Lines(string(content)) {
		if field, text, isRefusal := strings.Cut(strings.TrimSpace(line), ": "); isRefusal && !strings.HasPrefix(line, "#") {
			found = append(found, refusal{index.ReplaceAllString(field, "[]"), text})
		}
	}
	return found
}

// expectation is one rule of a schema: a refusal by it is about this field,
// where KEY stands for any key of a map, and has all these parts in its text.
type expectation struct {
	field string
	parts []string
}

func (e expectation) String() string {
	return fmt.Sprintf("%s: …%s…", e.field, strings.Join(e.parts, "…"))
}

func (e expectation) isIn(said []refusal) bool {
	parent, isKey := strings.CutSuffix(e.field, ".KEY")
	return slices.ContainsFunc(said, func(line refusal) bool {
		isField := line.field == e.field || isKey && strings.HasPrefix(line.field, parent+".")
		return isField && !slices.ContainsFunc(e.parts, func(part string) bool { return !strings.Contains(line.text, part) })
	})
}

// checked is the part of a schema that something can be refused by.
type checked struct {
	Required             []string
	Enum                 []any
	Minimum, Maximum     *float64
	MaxLength            *int
	MaxItems             *int
	MaxProperties        *int
	Pattern              string
	IntOrString          bool `json:"x-kubernetes-int-or-string"`
	Items                *checked
	Properties           map[string]checked
	AdditionalProperties *checked
	Rules                []struct{ Message, MessageExpression, FieldPath string } `json:"x-kubernetes-validations"`
}

// readRules returns the rules that a user can break: those of the object as a
// whole, and of its spec.
func readRules(t *testing.T, path string) []expectation {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema checked `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatalf("read the CRD: %v", err)
	}
	var rules []expectation
	for _, version := range crd.Spec.Versions {
		root := version.Schema.OpenAPIV3Schema
		for _, rule := range root.rules("<nil>") {
			if !strings.Contains(rule.field, "status") {
				rules = append(rules, rule)
			}
		}
	}
	if len(rules) < 4 {
		t.Fatalf("found %d rules in %s", len(rules), path)
	}
	return rules
}

// rules returns the rules at and below a field.
func (c checked) rules(field string) []expectation {
	found := c.ownRules(field)
	below := func(name string) string {
		if field == "<nil>" {
			return name
		}
		return field + "." + name
	}
	for _, name := range c.Required {
		found = append(found, expectation{below(name), []string{"Required value"}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		found = append(found, c.Properties[name].rules(below(name))...)
	}
	if c.Items != nil {
		found = append(found, c.Items.rules(field+"[]")...)
	}
	if c.AdditionalProperties != nil {
		found = append(found, c.AdditionalProperties.rules(below("KEY"))...)
	}
	return found
}

func (c checked) ownRules(field string) []expectation {
	var found []expectation
	expect := func(isThere bool, format string, bound any) {
		if isThere {
			found = append(found, expectation{field, []string{fmt.Sprintf(format, bound)}})
		}
	}
	number := func(value *float64) float64 {
		if value == nil {
			return 0
		}
		return *value
	}
	length := func(value *int) int {
		if value == nil {
			return 0
		}
		return *value
	}
	expect(c.Enum != nil, "Unsupported value%s", "")
	expect(c.Minimum != nil, "should be greater than or equal to %v", number(c.Minimum))
	expect(c.Maximum != nil, "should be less than or equal to %v", number(c.Maximum))
	expect(c.MaxLength != nil, "may not be more than %d bytes", length(c.MaxLength))
	expect(c.MaxItems != nil, "must have at most %d items", length(c.MaxItems))
	expect(c.MaxProperties != nil, "must have at most %d items", length(c.MaxProperties))
	expect(c.Pattern != "", "should match '%s'", c.Pattern)
	for _, rule := range c.Rules {
		place := field
		if rule.FieldPath != "" {
			place += quotedName.ReplaceAllString(rule.FieldPath, ".$1")
		}
		found = append(found, expectation{place, partsOf(rule.Message, rule.MessageExpression)})
	}
	return found
}

// constant is a text in a CEL expression.
var constant = regexp.MustCompile(`"([^"]*)"`)

// quotedName is how a rule's path writes a name that has a dash.
var quotedName = regexp.MustCompile(`\['([^']*)'\]`)

// partsOf returns what every message of a rule has in it: all of it, or the
// constants that it is put together from.
func partsOf(message, expression string) []string {
	if message != "" {
		return []string{message}
	}
	var parts []string
	for _, match := range constant.FindAllStringSubmatch(expression, -1) {
		parts = append(parts, match[1])
	}
	return parts
}

func TestTheRulesOfASchemaAreFound(t *testing.T) {
	var schema checked
	if err := yaml.UnmarshalStrict([]byte(`{required: [a], properties: {
		a: {enum: [x], maxLength: 3, x-kubernetes-validations: [{messageExpression: '"was " + oldSelf + ", stays"'}, {message: m, fieldPath: .b}]},
		c: {maxItems: 2, items: {minimum: 1, maximum: 1.5}},
		d: {maxProperties: 4, additionalProperties: {maxLength: 5}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	said := []refusal{
		{"spec.a", "Required value"},
		{"spec.a", `Unsupported value: "y"`},
		{"spec.a", "Too long: may not be more than 3 bytes"},
		{"spec.a", `Invalid value: "z": was y, stays`},
		{"spec.a.b", "Invalid value: m"},
		{"spec.c", "Too many: 3: must have at most 2 items"},
		{"spec.c[]", "should be greater than or equal to 1"},
		{"spec.c[]", "should be less than or equal to 1.5"},
		{"spec.d", "Too many: 5: must have at most 4 items"},
		{"spec.d.KEY", "Too long: may not be more than 5 bytes"},
	}
	rules := schema.rules("spec")
	if len(rules) != len(said) {
		t.Errorf("found %v, want %d rules", rules, len(said))
	}
	for i, rule := range rules {
		if !rule.isIn(said) {
			t.Errorf("%s isn't recognised", rule)
		}
		if i == 0 && rule.isIn(said[1:]) {
			t.Errorf("%s is recognised in %v", rule, said[1:])
		}
	}
}
