// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// update renews the golden files instead of comparing with them.
var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestTheRenderedDeployment(t *testing.T) {
	for file, foo := range map[string]*v1alpha1.Foo{
		"example-foo.yaml": newFoo(),
		"defaults.yaml":    newFoo(func(foo *v1alpha1.Foo) { foo.Name, foo.Spec.Replicas = "least", nil }),
	} {
		t.Run(file, func(t *testing.T) {
			wanted, err := seal(Render(foo))
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(wanted.fields)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("it differs from %s; if it is right, run the test with -update:\n%s", path, got)
			}
		})
	}
}

func TestWhatCannotBeRenderedIsSaid(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*v1alpha1.Foo)
		// says is part of the message; empty if nothing is wrong.
		says string
	}{
		"the Foo of the articles is fine": {func(*v1alpha1.Foo) {}, ""},
		"replicas may be left out":        {func(foo *v1alpha1.Foo) { foo.Spec.Replicas = nil }, ""},
		"a name may have dots":            {func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "a.b-c.7" }, ""},
		"a name of 242 characters is fine": {
			func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = strings.Repeat("a", 242) }, "",
		},
		"a spec may be missing as a whole": {
			func(foo *v1alpha1.Foo) { foo.Spec = v1alpha1.FooSpec{} }, "spec.deploymentName is empty",
		},
		"a name with capitals": {
			func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "Bad_Name" }, `spec.deploymentName is "Bad_Name"`,
		},
		"a name with a line break": {
			func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "a\n" }, `spec.deploymentName is "a\n"`,
		},
		"a name of 243 characters": {
			func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = strings.Repeat("a", 243) }, "at most 242 characters",
		},
		"replicas 0":        {func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(0)) }, "spec.replicas is 0"},
		"replicas 11":       {func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(11)) }, "allowed are 1 to 10"},
		"replicas negative": {func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(-1)) }, "spec.replicas is -1"},
		"a Foo of a name that is too long for a label": {
			func(foo *v1alpha1.Foo) { foo.Name = strings.Repeat("n", 64) }, "metadata.name has 64 characters",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := check(newFoo(row.change))
			switch {
			case row.says == "" && found != nil:
				t.Errorf("refused: %s", found.message)
			case row.says != "" && (found == nil || found.reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(found.message, row.says)):
				t.Errorf("got %+v, want a message with %q", found, row.says)
			}
		})
	}
}
