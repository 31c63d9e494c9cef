// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The packages and files whose functions take now as a parameter.
var pure = []string{
	"internal/intent/", "internal/plan/", "internal/objects/", "internal/engine/",
	"internal/controller/foo/plan.go", "internal/controller/foo/render.go", "internal/controller/foo/report.go",
}

// engineTest runs real servers for the tests of engines: it lies beside the pure
// packages, and isn't one.
const engineTest = "internal/engine/enginetest/"

// What may not be used of packages that a pure package may import otherwise: by
// import path, the names.
var impure = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation", "Local"},
	"fmt":                                  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

func TestPureCodeReadsNoClock(t *testing.T) { check(t, impureCalls) }

// impureCalls finds effects in packages whose import is allowed. A time zone of
// the machine counts, since the same input would give another result elsewhere.
func impureCalls(s source) []string {
	if s.isTest() || strings.HasPrefix(s.path, engineTest) || !slices.ContainsFunc(pure, func(prefix string) bool { return strings.HasPrefix(s.path, prefix) }) {
		return nil
	}
	forbidden := map[string][]string{} // by the name that the file gives the package
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return []string{fmt.Sprintf("%s: import path %s can't be read", s.at(spec.Pos()), spec.Path.Value)}
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			return []string{s.at(spec.Pos()) + ": a dot import hides what is used"}
		}
		forbidden[name] = impure[path]
	}
	var violations []string
	ast.Inspect(s.file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(forbidden[pkg.Name], selector.Sel.Name) {
			violations = append(violations, fmt.Sprintf("%s: %s.%s is an effect, and this package is pure: take the value as a parameter",
				s.at(selector.Pos()), pkg.Name, selector.Sel.Name))
		}
		return true
	})
	return violations
}

func TestThePurityRuleFindsEffects(t *testing.T) {
	checkExamples(t, impureCalls, map[string]example{
		"the clock is found":                         {path: "internal/plan/a.go", code: "import \"time\"\nfunc f() time.Time { return time.Now() }", wants: []string{"time.Now"}},
		"the clock is found as a value":              {path: "internal/plan/a.go", code: "import \"time\"\nvar now = time.Now", wants: []string{"time.Now"}},
		"the clock is found under another name":      {path: "internal/objects/a.go", code: "import t \"time\"\nfunc f() { t.Sleep(1) }", wants: []string{"t.Sleep"}},
		"the API's clock is found":                   {path: "internal/engine/redis/a.go", code: "import metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\nvar a = metav1.Now()", wants: []string{"metav1.Now"}},
		"a dot import is found":                      {path: "internal/plan/a.go", code: "import . \"time\"\nvar a = Now()", wants: []string{"dot import"}},
		"times and durations are values":             {path: "internal/plan/a.go", code: "import \"time\"\nfunc f(now time.Time) time.Time { return now.Add(time.Second) }"},
		"a field called Now is none":                 {path: "internal/plan/a.go", code: "import \"time\"\ntype in struct{ Now time.Time }\nfunc f(i in) time.Time { return i.Now }"},
		"a test may read the clock":                  {path: "internal/plan/a_test.go", code: "import \"time\"\nvar a = time.Now()"},
		"the packages with effects may read a clock": {path: "internal/kit/a.go", code: "import \"time\"\nvar a = time.Now()"},
	})
}
