// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonIsDocumented compares the constants of conditions.go with the
// page that says what to do about each.
func TestEveryReasonIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range compareReasons(string(page), readConstants(t, "conditions.go")) {
		t.Error(complaint)
	}
}

// section is the heading of a reason, and row the row of a condition.
var (
	section = regexp.MustCompile(`(?m)^### (\S+)$`)
	row     = regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|")
)

// compareReasons says which constants the page lacks, and which that it has
// don't exist. Constants are given by their names.
func compareReasons(page string, constants map[string]string) []string {
	var found []string
	described := map[string]bool{}
	for _, kind := range []struct {
		prefix  string
		pattern *regexp.Regexp
	}{{"Condition", row}, {"Reason", section}, {"Event", section}} {
		for _, match := range kind.pattern.FindAllStringSubmatch(page, -1) {
			described[match[1]] = true
		}
	}
	for name, value := range constants {
		pattern := section
		if strings.HasPrefix(name, "Condition") {
			pattern = row
		}
		isThere := slices.ContainsFunc(pattern.FindAllStringSubmatch(page, -1), func(match []string) bool { return match[1] == value })
		if !isThere {
			found = append(found, "docs/conditions.md says nothing of "+name+", "+value+": say what it means, what was observed, and what to do")
		}
		delete(described, value)
	}
	for value := range described {
		found = append(found, "docs/conditions.md describes "+value+", which conditions.go doesn't have")
	}
	slices.Sort(found)
	return found
}

// readConstants returns the texts that a file of this package declares, by name.
func readConstants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, declaration := range parsed.Decls {
		group, isGroup := declaration.(*ast.GenDecl)
		if !isGroup || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, isValue := spec.(*ast.ValueSpec)
			if !isValue || len(value.Names) != 1 || len(value.Values) != 1 {
				t.Fatalf("%s declares a constant in a form that this test can't read", file)
			}
			literal, isLiteral := value.Values[0].(*ast.BasicLit)
			if !isLiteral {
				t.Fatalf("%s: %s is no text", file, value.Names[0].Name)
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, value.Names[0].Name, err)
			}
			constants[value.Names[0].Name] = text
		}
	}
	if len(constants) < 10 {
		t.Fatalf("found %d constants in %s", len(constants), file)
	}
	return constants
}

func TestTheComparisonOfReasonsFindsWhatIsMissing(t *testing.T) {
	const page = "| condition | True |\n|---|---|\n| `Ready` | x |\n\n### Fine\n\ntext\n\n### Lost\n"
	whole := map[string]string{"ConditionReady": "Ready", "ReasonFine": "Fine", "EventLost": "Lost"}
	for sentence, row := range map[string]struct {
		page      string
		constants map[string]string
		wants     int
	}{
		"all there":                    {page, whole, 0},
		"a condition isn't described":  {strings.Replace(page, "| `Ready` | x |\n", "", 1), whole, 1},
		"a reason isn't described":     {strings.Replace(page, "### Fine", "Fine", 1), whole, 1},
		"an event isn't described":     {strings.Replace(page, "### Lost", "", 1), whole, 1},
		"a reason that doesn't exist":  {page + "\n### Gone\n", whole, 1},
		"a reason by another name":     {strings.Replace(page, "### Fine", "### Good", 1), whole, 2},
		"a condition that is a reason": {page, map[string]string{"ConditionReady": "Fine", "EventLost": "Lost"}, 2},
	} {
		if got := compareReasons(row.page, row.constants); len(got) != row.wants {
			t.Errorf("%s: got %q, want %d", sentence, got, row.wants)
		}
	}
}
