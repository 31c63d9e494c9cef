// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "coolops.cn/database-manager"

// rule says what the packages that match its pattern may import. Patterns are
// relative to the module: "a/b" is one package, "a/..." a and all below it, and
// "a/*" those directly below. The first rule that matches a package holds.
type rule struct {
	pattern string

	// own are the packages of this module that may be imported.
	own []string
	// ownNever are exceptions to own.
	ownNever []string
	// foreign are the modules or packages that may be imported, with all below
	// them; nil means any.
	foreign []string
	// std are the packages of the standard library that may be imported; nil
	// means any.
	std []string
}

// pureStd are the packages of the standard library without effects: they don't
// read a clock, don't wait, and reach neither files nor the network. The
// functions of package time that read the clock are found by clock_test.go.
var pureStd = []string{
	"bytes", "cmp", "crypto/hmac", "crypto/sha1", "crypto/sha256", "crypto/subtle", "embed",
	"encoding", "encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json",
	"errors", "fmt", "hash", "hash/fnv", "iter", "maps", "math", "math/big", "math/bits",
	"net/url", "path", "reflect", "regexp", "slices", "sort", "strconv", "strings",
	"text/template", "time", "unicode", "unicode/utf8", "unique",
}

// pureForeign are the modules that describe objects, and do nothing with them.
var pureForeign = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go/applyconfigurations"}

// apiOwn are our API types and their apply configurations.
var apiOwn = []string{"pkg/apis/...", "pkg/generated/applyconfiguration/..."}

// rules is the whole architecture.
var rules = []rule{
	// What the others stand on.
	{pattern: "pkg/...", own: []string{"pkg/..."}},

	// The pure core: values in, values out.
	{pattern: "internal/intent", std: pureStd, foreign: pureForeign, own: apiOwn},
	{pattern: "internal/plan", std: pureStd, foreign: pureForeign, own: with(apiOwn, "internal/intent")},
	{pattern: "internal/objects", std: pureStd, foreign: pureForeign, own: with(apiOwn, "internal/intent", "internal/plan")},
	{pattern: "internal/engine/boot", std: pureStd, foreign: []string{}, own: []string{"internal/plan"}},
	{pattern: "internal/engine/catalog", std: pureStd, foreign: []string{}, own: apiOwn},
	{pattern: "internal/engine/parameter", std: pureStd, foreign: []string{}, own: []string{"internal/plan"}},
	{pattern: "internal/engine/optionfile", std: pureStd, foreign: []string{}, own: []string{"internal/plan", "internal/engine/parameter"}},
	// For the tests of the engines.
	{pattern: "internal/engine/filetest", foreign: []string{}, own: []string{"internal/plan"}},
	{pattern: "internal/engine/enginetest", own: []string{"internal/plan", "internal/engine/..."}},
	{pattern: "internal/engine/*", std: pureStd, foreign: pureForeign, own: with(apiOwn, "internal/intent", "internal/plan", "internal/engine/boot", "internal/engine/catalog", "internal/engine/optionfile", "internal/engine/parameter")},

	// Servers in memory, for tests.
	{pattern: "internal/played", std: pureStd, foreign: []string{}, own: []string{}},

	// The effects. A client of an engine knows no Kubernetes; the kit knows no
	// kind of ours.
	{pattern: "internal/dbclient/...", own: []string{"internal/plan", "internal/dbclient/...", "pkg/apis/..."}, foreign: []string{"github.com", "k8s.io/apimachinery"}},
	{pattern: "internal/kit/...", own: []string{"internal/kit/..."}},
	{pattern: "internal/controller/*", own: []string{"internal/...", "pkg/..."}, ownNever: []string{"internal/controller/*", "internal/app"}},

	// The wiring.
	{pattern: "internal/app", own: []string{"internal/...", "pkg/..."}},
	{pattern: "cmd/*", own: []string{"internal/app"}},

	// What stands beside: tools, tests, and the steps of the articles.
	{pattern: "internal/arch", own: []string{}},
	{pattern: "internal/crdschema", own: []string{}, foreign: []string{"sigs.k8s.io/yaml"}},
	// It writes pages about the engines.
	{pattern: "hack/docgen", own: []string{"internal/engine/...", "internal/plan"}},
	{pattern: "hack/...", own: []string{"pkg/..."}},
	{pattern: "examples/...", own: []string{"examples/...", "pkg/..."}},
	{pattern: "test/...", own: []string{"test/...", "internal/...", "pkg/..."}},
}

// importableByNone are the parts of the repository that no other part imports.
var importableByNone = []string{"localcluster/...", "test/..."}

// goPackage is the part of `go list -json` that is used here.
type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestPackagesImportOnlyWhatTheirPlaceAllows(t *testing.T) {
	for _, pkg := range listPackages(t) {
		for _, violation := range checkImports(pkg, rules) {
			t.Error(violation)
		}
	}
}

// checkImports holds one package to the first rule that matches it. Imports of
// test files are free, except that nobody imports test or localcluster and pkg
// never reaches into internal.
func checkImports(pkg goPackage, rules []rule) []string {
	name := strings.TrimPrefix(strings.TrimPrefix(pkg.ImportPath, module), "/")
	index := slices.IndexFunc(rules, func(r rule) bool { return matches(r.pattern, name) })
	if index < 0 {
		return []string{name + " matches no rule: give it its place in the table in internal/arch/imports_test.go"}
	}
	var violations []string
	for _, imported := range pkg.Imports {
		if why := forbidden(rules[index], name, imported); why != "" {
			violations = append(violations, fmt.Sprintf("%s imports %s: %s", name, imported, why))
		}
	}
	for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
		if why := forbiddenInTests(name, imported); why != "" {
			violations = append(violations, fmt.Sprintf("%s imports %s in a test: %s", name, imported, why))
		}
	}
	return violations
}

// forbidden says why a package may not import another; "" if it may.
func forbidden(r rule, name, imported string) string {
	own, isOwn := strings.CutPrefix(imported, module+"/")
	isStd := !isOwn && !strings.Contains(strings.Split(imported, "/")[0], ".")
	switch {
	case isOwn && isImportableByNone(name, own):
		return "nobody imports localcluster or test"
	case isOwn && own != name && matchesAny(r.ownNever, own):
		return "packages beside each other stay apart, and none imports the wiring"
	case isOwn && !matchesAny(r.own, own):
		return "of this module it may import " + listOrNothing(r.own)
	case isStd && r.std != nil && !slices.Contains(r.std, imported):
		return "it is pure, and that package has effects, or isn't known to have none"
	case !isOwn && !isStd && r.foreign != nil && !slices.ContainsFunc(r.foreign, func(m string) bool { return isBelow(m, imported) }):
		return "of other modules it may import " + listOrNothing(r.foreign)
	}
	return ""
}

// forbiddenInTests says why the tests of a package may not import another.
func forbiddenInTests(name, imported string) string {
	own, isOwn := strings.CutPrefix(imported, module+"/")
	switch {
	case isOwn && isImportableByNone(name, own):
		return "nobody imports localcluster or test"
	case isOwn && isBelow("pkg", name) && isBelow("internal", own):
		return "pkg never imports internal"
	}
	return ""
}

func isImportableByNone(name, own string) bool {
	return slices.ContainsFunc(importableByNone, func(pattern string) bool {
		return matches(pattern, own) && !matches(pattern, name)
	})
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

// matches tells whether a package's name fits a pattern as rule describes them.
func matches(pattern, name string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return isBelow(base, name)
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// isBelow tells whether name is base or lies under it.
func isBelow(base, name string) bool {
	return name == base || strings.HasPrefix(name, base+"/")
}

func with(list []string, more ...string) []string { return slices.Concat(list, more) }

func listOrNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return "only " + strings.Join(list, ", ")
}

// listPackages reads all packages of the module, those that only tests with
// build tags have included.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports",
		"-tags=realengine,integration,faults,e2e,examples,readme", module+"/...")
	stderr := &strings.Builder{}
	command.Stderr = stderr
	stdout, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(stdout))); ; {
		var pkg goPackage
		switch err := decoder.Decode(&pkg); err {
		case nil:
			packages = append(packages, pkg)
		case io.EOF:
			return packages
		default:
			t.Fatalf("read the output of go list: %v", err)
		}
	}
}
