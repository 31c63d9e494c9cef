// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

func TestNothingHappensBeforeMain(t *testing.T) { check(t, initFunctions) }

// initFunctions finds functions that run because a package is imported.
func initFunctions(s source) []string {
	var violations []string
	for _, decl := range s.file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "init" {
			violations = append(violations, s.at(function.Pos())+": init runs behind the reader's back: call what it does from main or from the test")
		}
	}
	return violations
}

func TestInternalPackagesKeepNoState(t *testing.T) { check(t, packageState) }

// packageState finds package-level variables in internal, other than those that
// stand for constants which Go can't express: errors, compiled patterns,
// embedded files, and assertions that a type has an interface.
func packageState(s source) []string {
	if s.isTest() || !strings.HasPrefix(s.path, "internal/") {
		return nil
	}
	var violations []string
	for _, decl := range s.file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || isEmbedded(general, value) {
				continue
			}
			for i, name := range value.Names {
				if name.Name == "_" || i < len(value.Values) && standsForConstant(value.Values[i]) {
					continue
				}
				violations = append(violations, fmt.Sprintf("%s: %s is a package variable, which anybody may change: return it from a function, or pass it in",
					s.at(name.Pos()), name.Name))
			}
		}
	}
	return violations
}

// isEmbedded tells whether a //go:embed directive fills the variable.
func isEmbedded(decl *ast.GenDecl, value *ast.ValueSpec) bool {
	for _, group := range []*ast.CommentGroup{decl.Doc, value.Doc} {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// standsForConstant tells whether an expression makes an error or a pattern.
func standsForConstant(expr ast.Expr) bool {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch pkg.Name + "." + selector.Sel.Name {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile":
		return true
	}
	return false
}

func TestTheStateRulesFindState(t *testing.T) {
	checkExamples(t, initFunctions, map[string]example{
		"an init function is found":            {path: "internal/app/a.go", code: "func init() {}", wants: []string{"init"}},
		"a method called init is none":         {path: "internal/app/a.go", code: "type t int\nfunc (t) init() {}"},
		"a function called initialize is none": {path: "internal/app/a.go", code: "func initialize() {}"},
	})
	checkExamples(t, packageState, map[string]example{
		"a map is state":                                 {path: "internal/kit/a.go", code: "var seen = map[string]bool{}", wants: []string{"seen"}},
		"a variable without a value is state":            {path: "internal/kit/a.go", code: "var count, total int", wants: []string{"count", "total"}},
		"a table is state, since a slice can be written": {path: "internal/engine/redis/a.go", code: "var versions = []string{\"8.0\"}", wants: []string{"versions"}},
		"a variable among others is found":               {path: "internal/kit/a.go", code: "import \"errors\"\nvar (\n\terrA = errors.New(\"a\")\n\tb = 1\n)", wants: []string{"b is"}},
		"constants are none":                             {path: "internal/kit/a.go", code: "const a = 1"},
		"an error is none":                               {path: "internal/kit/a.go", code: "import \"errors\"\nvar ErrA = errors.New(\"a\")"},
		"a pattern is none":                              {path: "internal/kit/a.go", code: "import \"regexp\"\nvar pattern = regexp.MustCompile(\"a\")"},
		"an interface assertion is none":                 {path: "internal/kit/a.go", code: "var _ error = (*e)(nil)\ntype e struct{ error }"},
		"an embedded file is none":                       {path: "internal/engine/redis/a.go", code: "import _ \"embed\"\n//go:embed boot.sh\nvar boot string"},
		"a test may have a flag":                         {path: "internal/kit/a_test.go", code: "var update = false"},
		"outside of internal it is allowed":              {path: "pkg/apis/a.go", code: "var a = 1"},
	})
}
