// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"strings"
	"testing"
)

func TestImportRulesRefuseWhatTheyAreThereToRefuse(t *testing.T) {
	for sentence, row := range map[string]struct {
		from, imports string
		refused       string // part of the reason; "" means allowed
	}{
		"the planner may read API types":                      {"internal/plan", "our:pkg/apis/coolops/v1alpha1", ""},
		"the planner may read core types":                     {"internal/plan", "k8s.io/api/core/v1", ""},
		"a server in memory knows nobody":                     {"internal/played", "our:internal/plan", "of this module"},
		"a server in memory has no clock of its own":          {"internal/played", "context", "pure"},
		"the planner may handle times":                        {"internal/plan", "time", ""},
		"the planner gets no context":                         {"internal/plan", "context", "pure"},
		"the planner dials nobody":                            {"internal/plan", "net", "pure"},
		"the planner rolls no dice":                           {"internal/plan", "math/rand/v2", "pure"},
		"the planner opens no file":                           {"internal/plan", "os", "pure"},
		"the planner speaks no SQL":                           {"internal/plan", "database/sql", "pure"},
		"the planner gets no client":                          {"internal/plan", "k8s.io/client-go/kubernetes", "of other modules"},
		"the planner gets no client of ours":                  {"internal/plan", "our:pkg/generated/clientset/versioned", "of this module"},
		"the planner doesn't render":                          {"internal/plan", "our:internal/objects", "of this module"},
		"the planner knows no engine":                         {"internal/plan", "our:internal/engine/redis", "of this module"},
		"rendering may use the planner's words":               {"internal/objects", "our:internal/plan", ""},
		"rendering may use apply configurations":              {"internal/objects", "k8s.io/client-go/applyconfigurations/core/v1", ""},
		"rendering gets no informer":                          {"internal/objects", "k8s.io/client-go/informers", "of other modules"},
		"rendering knows no engine":                           {"internal/objects", "our:internal/engine/redis", "of this module"},
		"what tests engines alike knows none of them":         {"internal/engine/filetest", "our:internal/engine/redis", "of this module"},
		"an engine doesn't bring its tests along":             {"internal/engine/redis", "our:internal/engine/filetest", "of this module"},
		"an engine may use the planner's words":               {"internal/engine/redis", "our:internal/plan", ""},
		"an engine may embed files":                           {"internal/engine/redis", "embed", ""},
		"an engine knows no other":                            {"internal/engine/redis", "our:internal/engine/mysql", "of this module"},
		"an engine is no driver":                              {"internal/engine/redis", "github.com/redis/go-redis/v9", "of other modules"},
		"a database client may use a driver":                  {"internal/dbclient/redis", "github.com/redis/go-redis/v9", ""},
		"a database client may dial":                          {"internal/dbclient/redis", "net", ""},
		"a database client may use the planner's words":       {"internal/dbclient/redis", "our:internal/plan", ""},
		"a database client asks no API server":                {"internal/dbclient/redis", "k8s.io/client-go/rest", "of other modules"},
		"a database client knows no controller":               {"internal/dbclient/redis", "our:internal/controller/databasemanager", "of this module"},
		"the kit may use client-go":                           {"internal/kit", "k8s.io/client-go/tools/cache", ""},
		"the kit knows no type of ours":                       {"internal/kit", "our:pkg/apis/coolops/v1alpha1", "nothing|only"},
		"the kit doesn't plan":                                {"internal/kit", "our:internal/plan", "only"},
		"a controller may use the kit":                        {"internal/controller/foo", "our:internal/kit", ""},
		"a controller knows no other":                         {"internal/controller/foo", "our:internal/controller/databasemanager", "stay apart"},
		"a controller doesn't wire":                           {"internal/controller/foo", "our:internal/app", "stay apart"},
		"the wiring knows all":                                {"internal/app", "our:internal/controller/databasemanager", ""},
		"the program only runs the app":                       {"cmd/database-manager", "our:internal/app", ""},
		"the program builds no controller":                    {"cmd/database-manager", "our:internal/controller/foo", "of this module"},
		"what reads a schema reads no other code of ours":     {"internal/crdschema", "our:pkg/apis/coolops/v1alpha1", "of this module"},
		"pkg never imports internal":                          {"pkg/apis/coolops/v1alpha1", "our:internal/plan", "of this module"},
		"a test in pkg never imports internal":                {"pkg/apis/coolops/v1alpha1", "test:our:internal/plan", "never"},
		"an example never imports internal":                   {"examples/05-controller", "our:internal/kit", "of this module"},
		"an example may use our clients":                      {"examples/05-controller", "our:pkg/generated/clientset/versioned", ""},
		"nobody imports test":                                 {"internal/app", "our:test/e2e", "nobody"},
		"nobody imports test, not even in a test":             {"internal/plan", "test:our:test/faults", "nobody"},
		"nobody imports localcluster":                         {"internal/app", "our:localcluster/node", "nobody"},
		"tests may share code among themselves":               {"test/e2e", "our:test/kube", ""},
		"tests of a pure package may open golden files":       {"internal/plan", "test:os", ""},
		"a package that has no place yet is asked for one":    {"internal/util", "fmt", "no rule"},
		"a package below a one-level pattern has none either": {"internal/engine/redis/boot", "fmt", "no rule"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := strings.Join(checkImports(exampleOf(row.from, row.imports), rules), "\n")
			if row.refused == "" && got != "" {
				t.Errorf("refused: %s", got)
			}
			isExpected := slices.ContainsFunc(strings.Split(row.refused, "|"), func(part string) bool { return strings.Contains(got, part) })
			if row.refused != "" && (got == "" || !isExpected) {
				t.Errorf("got %q, want a refusal with %q", got, row.refused)
			}
		})
	}
}

// exampleOf makes a package with one import: "our:" stands for this module, and
// "test:" for the import of a test file.
func exampleOf(from, imports string) goPackage {
	pkg := goPackage{ImportPath: module + "/" + from}
	name, isTest := strings.CutPrefix(imports, "test:")
	if own, ok := strings.CutPrefix(name, "our:"); ok {
		name = module + "/" + own
	}
	if isTest {
		pkg.TestImports = []string{name}
	} else {
		pkg.Imports = []string{name}
	}
	return pkg
}
