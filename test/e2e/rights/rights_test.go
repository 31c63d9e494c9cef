//go:build e2e

// SPDX-License-Identifier: Apache-2.0

// Package rights compares what the manifests grant to the operator with what it
// asked for while the end-to-end tests ran. It is run after them, on the API
// server's audit log, which E2E_AUDIT_LOG names; make test-e2e does so.
package rights

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"coolops.cn/database-manager/test/e2e/audit"
)

// right is a verb on a resource, as in "patch coolops.cn/databasemanagers/status".
// In the operator's own namespace it begins with "own: ".
type right string

// exceptions are rights that the tests needn't have the operator use, though they
// may by chance, by why it has them.
func exceptions() map[right]string {
	const (
		ownership = "the admission plug-in OwnerReferencesPermissionEnforcement asks for it before a child may name its owner"
		list      = "where the API server doesn't begin a watch with what there is, the informers list first"
	)
	known := map[right]string{
		"update coolops.cn/databasemanagers/finalizers":  ownership,
		"update samplecontroller.k8s.io/foos/finalizers": ownership,
		"delete secrets":                    ownership + ", if the child exists: storage.retention.whenDeleted set to Delete on a live database",
		"patch events.k8s.io/events":        "the second event of one reason about the same version of an object makes a series of the first",
		"list samplecontroller.k8s.io/foos": list,
	}
	for _, resource := range []string{"apps/deployments", "apps/statefulsets", "apps/replicasets", "networking.k8s.io/networkpolicies", "policy/poddisruptionbudgets", "configmaps", "persistentvolumeclaims", "pods", "secrets", "services"} {
		known[right("list "+resource)] = list
	}
	return known
}

func TestTheOperatorHasTheRightsThatItUsesAndNoOthers(t *testing.T) {
	entries := requests(t)
	used, refused := map[right]bool{}, map[right]audit.Entry{}
	for _, entry := range entries {
		used[asked(entry)] = true
		if entry.LacksRight() {
			refused[asked(entry)] = entry
		}
	}
	for asked, entry := range refused {
		t.Errorf("%q isn't granted: %s: %s", asked, entry, entry.ResponseStatus.Message)
	}
	granted := granted(t)
	known := exceptions()
	for _, allowed := range slices.Sorted(maps.Keys(granted)) {
		if _, isException := known[allowed]; !used[allowed] && !isException {
			t.Errorf("%q is granted and was never used: take it away, or name here the scenario that needs it", allowed)
		}
	}
	for exception := range known {
		if !granted[exception] {
			t.Errorf("%q is an exception, and isn't granted", exception)
		}
	}
}

// requests are the operator's, oldest first.
func requests(t *testing.T) []audit.Entry {
	t.Helper()
	path := os.Getenv("E2E_AUDIT_LOG")
	if path == "" {
		t.Fatal("E2E_AUDIT_LOG is not set: run make test-e2e, or set it to the audit log of an API server that the end-to-end tests ran on")
	}
	all, err := audit.Read(path, audit.Operator)
	if err != nil {
		t.Fatal(err)
	}
	entries := slices.DeleteFunc(all, func(entry audit.Entry) bool {
		// Every client may ask what the API server is and can do.
		return entry.ObjectRef.Resource == ""
	})
	if len(entries) == 0 {
		t.Fatal("the audit log has no request of the operator's")
	}
	return entries
}

// asked is the right that a request needs.
func asked(entry audit.Entry) right {
	object := entry.ObjectRef
	if object.Resource == "leases" {
		return "own: " + rightTo(entry.Verb, object.APIGroup, object.Resource)
	}
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	return rightTo(entry.Verb, object.APIGroup, resource)
}

func rightTo(verb, group, resource string) right {
	if group != "" {
		resource = group + "/" + resource
	}
	return right(verb + " " + resource)
}

// granted are the rights that the manifests give.
func granted(t *testing.T) map[right]bool {
	t.Helper()
	rights := map[right]bool{}
	for file, prefix := range map[string]right{"cluster_role.yaml": "", "lease_role.yaml": "own: "} {
		for _, role := range roles(t, file) {
			for _, rule := range role.Rules {
				for _, verb := range rule.Verbs {
					for _, resource := range rule.Resources {
						rights[prefix+rightTo(verb, rule.APIGroups[0], resource)] = true
						if len(rule.APIGroups) != 1 || slices.Contains([]string{verb, resource, rule.APIGroups[0]}, "*") {
							t.Errorf("%s: a rule is too wide to be compared: %v", file, rule)
						}
					}
				}
			}
		}
	}
	return rights
}

// roles reads the Roles and ClusterRoles of a manifest; one has the form of the other.
func roles(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	var found []rbacv1.ClusterRole
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var role rbacv1.ClusterRole
		switch err := decoder.Decode(&role); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatalf("read %s: %v", file, err)
		case strings.HasSuffix(role.Kind, "Role"):
			found = append(found, role)
		}
	}
}
