// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// The greatest lengths of functions, in lines from func to the closing brace.
const (
	maxFunction = 80
	maxSync     = 40 // of functions called sync or Sync in a controller
)

func TestFunctionsAreShort(t *testing.T) { check(t, longFunctions) }

func longFunctions(s source) []string {
	var violations []string
	for _, decl := range s.file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		limit := maxFunction
		if strings.HasPrefix(s.path, "internal/controller/") && strings.EqualFold(function.Name.Name, "sync") {
			limit = maxSync
		}
		lines := s.set.Position(function.End()).Line - s.set.Position(function.Pos()).Line + 1
		if lines > limit {
			violations = append(violations, fmt.Sprintf("%s: function %s has %d lines; at most %d are allowed: split it by the questions it answers",
				s.at(function.Pos()), function.Name.Name, lines, limit))
		}
	}
	return violations
}

func TestTheLengthRuleFindsLongFunctions(t *testing.T) {
	function := func(name string, lines int) string {
		return "func " + name + "() {\n" + strings.Repeat("\t_ = 0\n", lines-2) + "}\n"
	}
	checkExamples(t, longFunctions, map[string]example{
		"80 lines are allowed":                        {path: "internal/plan/a.go", code: function("decide", 80)},
		"81 lines are too many":                       {path: "internal/plan/a.go", code: function("decide", 81), wants: []string{"decide has 81 lines; at most 80"}},
		"a test is a function too":                    {path: "internal/plan/a_test.go", code: function("TestA", 81), wants: []string{"TestA"}},
		"a sync in a controller has at most 40":       {path: "internal/controller/foo/controller.go", code: function("sync", 41), wants: []string{"sync has 41 lines; at most 40"}},
		"a sync of 40 lines is allowed":               {path: "internal/controller/foo/controller.go", code: function("Sync", 40)},
		"elsewhere sync is a function like any other": {path: "internal/kit/cache.go", code: function("sync", 41)},
	})
}
