// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const source = "../.."

// A package that Sources leaves out could change without the component being built anew.
func TestSourcesHoldEveryPackageOfOurs(t *testing.T) {
	for _, component := range append(ForNodes(), ForFake()...) {
		t.Run(component.Name, func(t *testing.T) {
			builder := Builder{Source: source}
			const format = `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`
			output, err := builder.goCommand(t.Context(), component, "list", "-deps", "-f", format, component.Package).Output()
			if err != nil {
				t.Fatal(withStderr(err))
			}
			module, err := filepath.Abs(filepath.Join(source, component.Module))
			if err != nil {
				t.Fatal(err)
			}
			var imported []string
			for dir := range strings.FieldsSeq(string(output)) {
				relative, err := filepath.Rel(module, dir)
				if err != nil {
					t.Fatal(err)
				}
				imported = append(imported, relative)
			}
			slices.Sort(imported)
			declared := slices.Sorted(slices.Values(component.Sources))
			if !slices.Equal(imported, declared) {
				t.Errorf("imported are %q, declared %q", imported, declared)
			}
		})
	}
}

func TestKubernetesVersionIsThatOfTheModule(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	command.Dir = source
	output, err := command.Output()
	if err != nil {
		t.Fatal(withStderr(err))
	}
	if version := strings.TrimSpace(string(output)); version != KubernetesVersion {
		t.Errorf("go.mod requires %s, and the binaries would say %s", version, KubernetesVersion)
	}
}

func TestFindSource(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "localcluster")
	if err := errors.Join(os.Mkdir(module, 0o755), os.WriteFile(filepath.Join(module, "go.mod"), []byte("module coolops.cn/database-manager/localcluster\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for sentence, row := range map[string]struct{ dir, given, want string }{
		"in the repository it is a folder of it": {root, "", module},
		"in the module it is the working folder": {module, "", module},
		"a folder that is named is taken":        {"/", module, module},
		"elsewhere there is none":                {"/", "", ""},
		"another module isn't it":                {module, root, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Chdir(row.dir)
			got, err := FindSource(row.given)
			if got != row.want || (err == nil) != (row.want != "") {
				t.Errorf("got %q (%v), want %q", got, err, row.want)
			}
		})
	}
}
