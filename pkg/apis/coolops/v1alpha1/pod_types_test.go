// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestReservedKeysAreThoseThatOthersRelyOn(t *testing.T) {
	for pattern, keys := range map[string]struct{ reserved, free []string }{
		v1alpha1.ReservedServiceKey: {
			[]string{v1alpha1.AnnotationIntentHash, "coolops.cn/anything", "kubectl.kubernetes.io/last-applied-configuration"},
			[]string{"service.beta.kubernetes.io/aws-load-balancer-type", "example.com/coolops.cn", "not-coolops.cn/x", "coolops.cn"},
		},
		v1alpha1.ReservedPodKey: {
			[]string{
				v1alpha1.LabelRole, v1alpha1.LabelStem, v1alpha1.LabelName, v1alpha1.LabelInstance, v1alpha1.LabelManagedBy, v1alpha1.LabelComponent,
				"controller-revision-hash", "pod-template-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
				"batch.kubernetes.io/job-name", "container.apparmor.security.beta.kubernetes.io/database",
				"seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/database", "kubernetes.io/config.mirror",
			},
			[]string{
				"team", "example.com/team", "app.kubernetes.io/part-of", "app.kubernetes.io/names", "prometheus.io/scrape",
				"cluster-autoscaler.kubernetes.io/safe-to-evict", "kubectl.kubernetes.io/restartedAt", "kubernetes.io/egress-bandwidth",
			},
		},
	} {
		matcher := regexp.MustCompile(pattern)
		for _, key := range keys.reserved {
			if !matcher.MatchString(key) {
				t.Errorf("%s isn't reserved by %s", key, pattern)
			}
		}
		for _, key := range keys.free {
			if matcher.MatchString(key) {
				t.Errorf("%s is reserved by %s", key, pattern)
			}
		}
	}
}

// TestTheSchemaReservesTheSameKeys finds each pattern in the rules of its fields.
func TestTheSchemaReservesTheSameKeys(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config", "crd", "coolops.cn_databasemanagers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	rules := strings.Join(rulesIn(crd), "\n")
	for pattern, want := range map[string]int{v1alpha1.ReservedServiceKey: 1, v1alpha1.ReservedPodKey: 2} {
		if got := strings.Count(rules, "matches('"+pattern+"')"); got != want {
			t.Errorf("%d rules have the pattern %s, want %d", got, pattern, want)
		}
	}
}

// rulesIn returns every CEL rule of a schema.
func rulesIn(value any) []string {
	var rules []string
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			rules = append(rules, rulesIn(element)...)
		}
	case map[string]any:
		if rule, isText := value["rule"].(string); isText {
			rules = append(rules, rule)
		}
		for _, element := range value {
			rules = append(rules, rulesIn(element)...)
		}
	}
	return rules
}
