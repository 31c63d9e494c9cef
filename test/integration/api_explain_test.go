//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// explained is the part of a schema that kubectl explain prints, and what it is
// held to.
type explained struct {
	Description          string
	Type                 string
	Format               string
	Required             []string
	Items                *explained
	Properties           map[string]explained
	AdditionalProperties *explained
	IsQuantity           bool `json:"x-kubernetes-int-or-string"`
	Kinds                []struct {
		Group, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// TestEveryFieldIsExplained walks what kubectl explain --recursive prints, as
// the API server serves it.
func TestEveryFieldIsExplained(t *testing.T) {
	for path, kind := range map[string]string{
		"apis/coolops.cn/v1alpha1":              "DatabaseManager",
		"apis/samplecontroller.k8s.io/v1alpha1": "Foo",
	} {
		t.Run(kind, func(t *testing.T) {
			root := schemaOf(t, path, kind)
			walked := 0
			for _, part := range []string{"spec", "status"} {
				walked += checkExplained(t, part, part, root.Properties[part], slices.Contains(root.Required, part))
			}
			if walked < 4 {
				t.Errorf("walked %d fields, want all", walked)
			}
		})
	}
}

// schemaOf reads the schema of a kind from the API server's OpenAPI v3 document,
// which appears a moment after the kind.
func schemaOf(t *testing.T, path, kind string) explained {
	t.Helper()
	var content []byte
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		paths, err := env.kube.Discovery().OpenAPIV3().Paths()
		if err != nil || paths[path] == nil {
			return false, err
		}
		content, err = paths[path].Schema("application/json")
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("read the OpenAPI document %s: %v", path, err)
	}
	var document struct {
		Components struct{ Schemas map[string]explained }
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatalf("read the document %s: %v", path, err)
	}
	for _, schema := range document.Components.Schemas {
		for _, described := range schema.Kinds {
			if described.Kind == kind {
				return schema
			}
		}
	}
	t.Fatalf("%s has no schema of the kind %s", path, kind)
	return explained{}
}

// checkExplained holds one field, and all below it, to what a stranger needs. It
// returns how many they were.
func checkExplained(t *testing.T, path, name string, field explained, isRequired bool) int {
	t.Helper()
	for _, complaint := range complaintsAbout(path, name, field, isRequired) {
		t.Errorf("%s %s. Its description is %q", path, complaint, field.Description)
	}
	walked := 1
	for _, inner := range []*explained{&field, field.Items, field.AdditionalProperties} {
		if inner == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
			walked += checkExplained(t, path+"."+name, name, inner.Properties[name], slices.Contains(inner.Required, name))
		}
	}
	return walked
}

// unit is what tells a reader in what a number is.
var unit = regexp.MustCompile(`(?i)\bnumber of\b|\bin bytes\b|\bin CPUs\b|\bseconds\b|\bgeneration\b`)

// absence is what tells a reader what a field that isn't there means.
var absence = regexp.MustCompile(`(?i)\bdefault\b|\bwhile it is empty\b`)

func complaintsAbout(path, name string, field explained, isRequired bool) []string {
	var found []string
	description := strings.TrimSpace(field.Description)
	// The texts of a condition's fields are apimachinery's.
	isOurs := !strings.HasPrefix(path, "status.conditions.")
	if !strings.HasSuffix(description, ".") && isOurs || len(strings.Fields(description)) < 4 {
		found = append(found, "isn't described by a sentence")
	}
	if isOurs && !strings.HasPrefix(description, name+" ") {
		found = append(found, "is described by a sentence that doesn't begin with its name")
	}
	if (field.Type == "integer" || field.Type == "number" || field.IsQuantity) && !unit.MatchString(description) {
		found = append(found, "is a number without a unit")
	}
	if strings.HasPrefix(path, "spec.") && !isRequired && !absence.MatchString(description) {
		found = append(found, "is optional, and its default isn't named")
	}
	return found
}

func TestTheWalkFindsWhatIsntExplained(t *testing.T) {
	for sentence, row := range map[string]struct {
		field      explained
		isRequired bool
		wants      int
	}{
		"a required text":               {explained{Type: "string", Description: "x is what is meant."}, true, 0},
		"an optional text":              {explained{Type: "string", Description: "x is meant. Default: none."}, false, 0},
		"nothing":                       {explained{Type: "string"}, true, 2},
		"two words":                     {explained{Type: "string", Description: "x too."}, true, 1},
		"no default":                    {explained{Type: "string", Description: "x is what is meant."}, false, 1},
		"a number with a unit":          {explained{Type: "integer", Description: "x is the number of things."}, true, 0},
		"a number without a unit":       {explained{Type: "integer", Description: "x is how much."}, true, 1},
		"a quantity without a unit":     {explained{IsQuantity: true, Description: "x is how much."}, true, 1},
		"a sentence about another word": {explained{Type: "string", Description: "This is what is meant."}, true, 1},
	} {
		if got := complaintsAbout("spec.x", "x", row.field, row.isRequired); len(got) != row.wants {
			t.Errorf("%s: got %q, want %d complaints", sentence, got, row.wants)
		}
	}
}
