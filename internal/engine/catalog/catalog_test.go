// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestEachEngineHasReleasesOldestFirstAndRunsTheNewest(t *testing.T) {
	for _, engine := range []v1alpha1.DatabaseType{
		v1alpha1.DatabaseTypeMySQL, v1alpha1.DatabaseTypeMariaDB, v1alpha1.DatabaseTypePostgreSQL,
		v1alpha1.DatabaseTypeRedis, v1alpha1.DatabaseTypeValkey,
	} {
		known := Engine{Name: engine}
		names := known.Versions()
		if len(names) == 0 || names[len(names)-1] != known.DefaultVersion() {
			t.Errorf("%s: the default is %s of %v", engine, known.DefaultVersion(), names)
		}
		for _, version := range names {
			if image, isKnown := known.Image(version); !isKnown || !strings.HasSuffix(image, ":"+version) {
				t.Errorf("%s %s has the image %q", engine, version, image)
			}
		}
		if image, isKnown := known.Image("0.9"); isKnown {
			t.Errorf("%s 0.9 has the image %q", engine, image)
		}
		if !slices.IsSortedFunc(names, compareVersions) {
			t.Errorf("%s: %v isn't in order", engine, names)
		}
	}
}

// compareVersions orders versions whose numbers have at most two digits.
func compareVersions(a, b string) int {
	pad := func(version string) string {
		parts := strings.Split(version, ".")
		for i, part := range parts {
			parts[i] = strings.Repeat("0", 2-len(part)) + part
		}
		return strings.Join(parts, ".")
	}
	return strings.Compare(pad(a), pad(b))
}
