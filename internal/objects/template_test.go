// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// adopting is a user's wish for a form of the pod template.
func adopting(version string) func(*Input) {
	return func(in *Input) {
		in.Database.Annotations = map[string]string{v1alpha1.AnnotationAdoptTemplate: version}
	}
}

// recordedAs is a database that an operator made in that form, and with no defaults.
func recordedAs(version string) func(*Input) {
	return func(in *Input) {
		in.Recorded.Version, in.Recorded.Image, in.Recorded.TemplateVersion = "2.0", "redis:2.0", version
	}
}

// formOf returns the form that a workload is rendered in.
func formOf(t *testing.T, in Input) string {
	t.Helper()
	desired, problem := Render(in)
	if problem != nil {
		t.Fatal(problem)
	}
	return annotationsOf(t, desired.Workload())[v1alpha1.AnnotationTemplateVersion]
}

func TestANewDatabaseHasTheNewestForm(t *testing.T) {
	if got := formOf(t, anInput()); got != newestTemplate().version {
		t.Errorf("it has the form %s, want %s", got, newestTemplate().version)
	}
}

// TestAFormThatIsTheNewestIsAdoptedByNobody also not together with other
// defaults: what was adopted once would otherwise follow the operator's flags.
func TestAFormThatIsTheNewestIsAdoptedByNobody(t *testing.T) {
	newest := newestTemplate().version
	for _, asked := range []string{newest, "0", "999", ""} {
		in := anInput(withVolume, recordedAs(newest))
		before := renderAndRecord(t, &in)
		adopting(asked)(&in)
		withSomeDefaults(&in)
		if after := renderAndRecord(t, &in); after != before {
			t.Errorf("asked for %q, it is\n%s\nand was\n%s", asked, after, before)
		}
	}
}

func TestEveryFormIsKnownByItsVersion(t *testing.T) {
	seen := map[string]bool{}
	for _, form := range templates() {
		if seen[form.version] || form.version == "" {
			t.Errorf("there are two forms %q", form.version)
		}
		seen[form.version] = true
		if got := formOf(t, anInput(recordedAs(form.version))); got != form.version {
			t.Errorf("what was rendered in the form %s is now in the form %s", form.version, got)
		}
	}
}
