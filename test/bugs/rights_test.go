// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestTheOperatorMayNotDoWhatItNeverDoes reads what the manifests grant to the
// operator: what isn't there can't be done by any mistake of its code, nor by
// whoever takes it over.
func TestTheOperatorMayNotDoWhatItNeverDoes(t *testing.T) {
	for _, manifest := range []string{"operator.yaml", "operator-namespaced.yaml", "install.yaml"} {
		t.Run(manifest, func(t *testing.T) {
			granted := readRules(t, filepath.Join("..", "..", "config", manifest))
			if len(granted) == 0 {
				t.Fatal("nothing is granted")
			}
			for _, rule := range granted {
				for _, why := range dangers(rule) {
					t.Errorf("it may %v %v: %s", rule.Verbs, rule.Resources, why)
				}
			}
		})
	}
}

// dangers says what a rule allows that none may.
func dangers(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, part := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
		if part == "*" {
			found = append(found, "a wildcard")
		}
	}
	for _, resource := range rule.Resources {
		// The claims of members that were scaled away go, one by one, where the spec says so.
		isClaim, deletesAll := strings.HasPrefix(resource, "persistentvolumeclaims"), slices.Contains(rule.Verbs, "deletecollection")
		destroys := deletesAll || slices.Contains(rule.Verbs, "delete") && !isClaim
		switch kind, sub, _ := strings.Cut(resource, "/"); {
		case destroys && (kind == "persistentvolumeclaims" || kind == "persistentvolumes"):
			found = append(found, "that destroys data")
		case slices.Contains([]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings", "serviceaccounts"}, kind):
			found = append(found, "that grants rights")
		case slices.Contains([]string{"exec", "attach", "portforward", "proxy", "ephemeralcontainers"}, sub):
			found = append(found, "that reaches into pods")
		}
	}
	return found
}

// TestDangersAreFound keeps the test above able to fail.
func TestDangersAreFound(t *testing.T) {
	for sentence, row := range map[string]struct {
		verb, resource string
		count          int
	}{
		"a volume claim is deleted": {"delete", "persistentvolumeclaims", 0},
		"a volume is deleted":       {"delete", "persistentvolumes", 1},
		"all of them are":           {"deletecollection", "persistentvolumeclaims", 1},
		"a volume claim is changed": {"patch", "persistentvolumeclaims", 0},
		"a role is bound":           {"create", "rolebindings", 1},
		"a token is made":           {"create", "serviceaccounts/token", 1},
		"a command is run":          {"create", "pods/exec", 1},
		"a pod is evicted":          {"create", "pods/eviction", 0},
		"everything is allowed":     {"*", "*", 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := dangers(rbacv1.PolicyRule{Verbs: []string{row.verb}, Resources: []string{row.resource}}); len(got) != row.count {
				t.Errorf("got %v, want %d", got, row.count)
			}
		})
	}
}

// readRules reads the rules of the operator's own Roles and ClusterRoles; those
// for users aggregate to what Kubernetes has for them.
func readRules(t *testing.T, path string) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var role rbacv1.ClusterRole
		err := decoder.Decode(&role)
		switch {
		case errors.Is(err, io.EOF):
			return rules
		case err != nil:
			t.Fatalf("read %s: %v", path, err)
		case role.Kind == "Role", role.Kind == "ClusterRole" && !isForUsers(role):
			rules = append(rules, role.Rules...)
		}
	}
}

func isForUsers(role rbacv1.ClusterRole) bool {
	for label := range role.Labels {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}
