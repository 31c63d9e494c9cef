//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// groupVersion and databaseResource name the API for clients that know no types.
var (
	groupVersion     = schema.GroupVersion(v1alpha1.GroupVersion)
	databaseResource = groupVersion.WithResource("databasemanagers")
)

// strict is how kubectl creates: an unknown field is an error.
var strict = metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}

// refusedSpecs are specs that the API server refuses, by what is wrong with them.
var refusedSpecs = map[string]string{
	"no spec":                                              ``,
	"an empty spec":                                        `{}`,
	"deploymentName missing":                               `{dbtype: redis}`,
	"deploymentName empty":                                 `{deploymentName: "", dbtype: redis}`,
	"deploymentName with capitals":                         `{deploymentName: Orders, dbtype: redis}`,
	"deploymentName beginning with a digit":                `{deploymentName: 1orders, dbtype: redis}`,
	"deploymentName ending in a dash":                      `{deploymentName: orders-, dbtype: redis}`,
	"deploymentName with a dot":                            `{deploymentName: orders.db, dbtype: redis}`,
	"deploymentName with a line break":                     `{deploymentName: "orders\n", dbtype: redis}`,
	"deploymentName of 41 characters":                      `{deploymentName: ` + strings.Repeat("a", 41) + `, dbtype: redis}`,
	"deploymentName of 60 characters":                      `{deploymentName: ` + strings.Repeat("a", 60) + `, dbtype: redis}`,
	"deploymentName of 254 characters":                     `{deploymentName: ` + strings.Repeat("a", 254) + `, dbtype: redis}`,
	"deploymentName a number":                              `{deploymentName: 7, dbtype: redis}`,
	"dbtype missing":                                       `{deploymentName: orders}`,
	"dbtype empty":                                         `{deploymentName: orders, dbtype: ""}`,
	"dbtype unknown":                                       `{deploymentName: orders, dbtype: oracle}`,
	"retention of a policy for scaling that doesn't exist": `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, retention: {whenScaled: Keep}}}`,
	"retention of a policy that doesn't exist":             `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, retention: {whenDeleted: Keep}}}`,
	"dbtype with a capital":                                `{deploymentName: orders, dbtype: Redis}`,
	"replicas 0":                                           `{deploymentName: orders, dbtype: redis, replicas: 0}`,
	"replicas 11":                                          `{deploymentName: orders, dbtype: redis, replicas: 11}`,
	"replicas negative":                                    `{deploymentName: orders, dbtype: redis, replicas: -1}`,
	"replicas a text":                                      `{deploymentName: orders, dbtype: redis, replicas: three}`,
	"replicas a fraction":                                  `{deploymentName: orders, dbtype: redis, replicas: 1.5}`,
	"a mode of replication that doesn't exist":             `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: semisync}}`,
	"a mode of replication with a capital":                 `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: Sync}}`,
	"a mode of replication that is empty":                  `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: ""}}`,
	"a field of replication that doesn't exist":            `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {quorum: 2}}`,
	"version empty":                                        `{deploymentName: orders, dbtype: redis, version: ""}`,
	"version a word":                                       `{deploymentName: orders, dbtype: redis, version: latest}`,
	"version with a suffix":                                `{deploymentName: orders, dbtype: redis, version: 8.0-alpine}`,
	"version of four numbers":                              `{deploymentName: orders, dbtype: redis, version: 8.0.0.1}`,
	"version without quotes":                               `{deploymentName: orders, dbtype: redis, version: 8.0}`,
	"version of 33 characters":                             `{deploymentName: orders, dbtype: redis, version: "` + strings.Repeat("8", 33) + `"}`,
	"image empty":                                          `{deploymentName: orders, dbtype: redis, image: ""}`,
	"image with a space":                                   `{deploymentName: orders, dbtype: redis, image: "redis 8.0"}`,
	"image with a line break":                              `{deploymentName: orders, dbtype: redis, image: "redis:8.0\n"}`,
	"image of 513 characters":                              `{deploymentName: orders, dbtype: redis, image: ` + strings.Repeat("r", 513) + `}`,
	"storage without size":                                 `{deploymentName: orders, dbtype: redis, storage: {}}`,
	"storage a text":                                       `{deploymentName: orders, dbtype: redis, storage: 1Gi}`,
	"storage size empty":                                   `{deploymentName: orders, dbtype: redis, storage: {size: ""}}`,
	"storage size 0":                                       `{deploymentName: orders, dbtype: redis, storage: {size: 0}}`,
	"storage size negative":                                `{deploymentName: orders, dbtype: redis, storage: {size: -1Gi}}`,
	"storage size below the least":                         `{deploymentName: orders, dbtype: redis, storage: {size: 63Mi}}`,
	"storage size a bare number that forgot Gi":            `{deploymentName: orders, dbtype: redis, storage: {size: 10}}`,
	"storage size with a wrong unit":                       `{deploymentName: orders, dbtype: redis, storage: {size: 10GB}}`,
	"storage size that no Go client can decode":            `{deploymentName: orders, dbtype: redis, storage: {size: "1e1.5"}}`,
	"storage size that takes seconds to decode":            `{deploymentName: orders, dbtype: redis, storage: {size: "1e-9999999"}}`,
	"storageClassName empty":                               `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: ""}}`,
	"storageClassName with a capital":                      `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: Fast}}`,
	"storageClassName of 254 characters":                   `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: ` + strings.Repeat("a", 254) + `}}`,
	"cpu negative":                                         `{deploymentName: orders, dbtype: redis, resources: {requests: {cpu: -1}}}`,
	"cpu a fraction without quotes":                        `{deploymentName: orders, dbtype: redis, resources: {requests: {cpu: 0.5}}}`,
	"memory a word":                                        `{deploymentName: orders, dbtype: redis, resources: {limits: {memory: lots}}}`,
	"memory that no Go client can decode":                  `{deploymentName: orders, dbtype: redis, resources: {limits: {memory: "1e1.5"}}}`,
	"ephemeral-storage with a wrong unit":                  `{deploymentName: orders, dbtype: redis, resources: {limits: {ephemeral-storage: 1GB}}}`,
	"cpu requested above its limit":                        `{deploymentName: orders, dbtype: redis, resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}}`,
	"memory requested above its limit":                     `{deploymentName: orders, dbtype: redis, resources: {requests: {memory: 1Gi}, limits: {memory: 1G}}}`,
	"ephemeral-storage requested above its limit":          `{deploymentName: orders, dbtype: redis, resources: {requests: {ephemeral-storage: 2Gi}, limits: {ephemeral-storage: 1Gi}}}`,
	"a resource of another kind":                           `{deploymentName: orders, dbtype: redis, resources: {limits: {mem: 1Gi}}}`,
	"claims":                                               `{deploymentName: orders, dbtype: redis, resources: {claims: [{name: gpu}]}}`,
	"auth empty":                                           `{deploymentName: orders, dbtype: redis, auth: {}}`,
	"auth by a name with a capital":                        `{deploymentName: orders, dbtype: redis, auth: {secretName: Mine}}`,
	"auth by an empty name":                                `{deploymentName: orders, dbtype: redis, auth: {secretName: ""}}`,
	"auth by the name of another namespace":                `{deploymentName: orders, dbtype: redis, auth: {secretName: other/mine}}`,
	"auth by a name of 254 characters":                     `{deploymentName: orders, dbtype: redis, auth: {secretName: ` + strings.Repeat("a", 254) + `}}`,
	"auth by the operator's own Secret":                    `{deploymentName: orders, dbtype: redis, auth: {secretName: orders-auth}}`,
	"auth by the operator's other Secret":                  `{deploymentName: orders, dbtype: redis, auth: {secretName: orders-admin}}`,
	"config with a number without quotes":                  `{deploymentName: orders, dbtype: redis, config: {maxmemory: 1}}`,
	"config with a name with a blank":                      `{deploymentName: orders, dbtype: redis, config: {"max memory": "1"}}`,
	"config with a name of 64 characters":                  `{deploymentName: orders, dbtype: redis, config: {` + strings.Repeat("a", 64) + `: "1"}}`,
	"config with a value of two lines":                     `{deploymentName: orders, dbtype: redis, config: {maxmemory: "1\nport 1"}}`,
	"config with a value of 257 characters":                `{deploymentName: orders, dbtype: redis, config: {maxmemory: "` + strings.Repeat("1", 257) + `"}}`,
	"config with a value that isn't ASCII":                 `{deploymentName: orders, dbtype: redis, config: {maxmemory: "é"}}`,
	"config of 65 parameters":                              `{deploymentName: orders, dbtype: redis, config: {` + manyLabels(65) + `}}`,
	"suspend a word":                                       `{deploymentName: orders, dbtype: redis, suspend: maybe}`,
	"shutdown a text":                                      `{deploymentName: orders, dbtype: redis, shutdown: "true"}`,
	"a field that doesn't exist":                           `{deploymentName: orders, dbtype: redis, replica: 3}`,
	"several mistakes at once":                             `{deploymentName: Orders, dbtype: redis, replicas: 0, version: latest}`,
}

// refusedChanges are changes that the API server refuses: from one spec to the
// next.
var refusedChanges = map[string][2]string{
	"deploymentName changed": {
		`{deploymentName: orders, dbtype: redis}`,
		`{deploymentName: invoices, dbtype: redis}`,
	},
	"dbtype changed to another engine": {
		`{deploymentName: orders, dbtype: redis}`,
		`{deploymentName: orders, dbtype: mysql}`,
	},
	"storage added": {
		`{deploymentName: orders, dbtype: redis}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
	},
	"storage removed": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
		`{deploymentName: orders, dbtype: redis}`,
	},
	"storage size shrunk": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 2Gi}}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
	},
	"storage size changed to nonsense": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1GB}}`,
	},
	"storageClassName changed": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: fast}}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: slow}}`,
	},
	"storageClassName added": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: fast}}`,
	},
	"storageClassName removed": {
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: fast}}`,
		`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`,
	},
	"several members in place of one, without storage": {
		`{deploymentName: orders, dbtype: redis}`,
		`{deploymentName: orders, dbtype: redis, replicas: 3}`,
	},
	"one member in place of several, without storage": {
		`{deploymentName: orders, dbtype: redis, replicas: 3}`,
		`{deploymentName: orders, dbtype: redis}`,
	},
	"replicas raised above the most": {
		`{deploymentName: orders, dbtype: redis, replicas: 3}`,
		`{deploymentName: orders, dbtype: redis, replicas: 11}`,
	},
}

// refusedAmounts are wrong amounts, of which each of the six in resources is
// given each.
var refusedAmounts = map[string]string{
	"a word":           "lots",
	"negative":         "-1",
	"of 33 characters": `"` + strings.Repeat("1", 31) + `Gi"`,
}

// refusedPeers are entries of spec.networkPolicy.from.
var refusedPeers = map[string]string{
	"nothing selected":                      `{}`,
	"pods and addresses at once":            `{podSelector: {}, ipBlock: {cidr: 192.0.2.0/24}}`,
	"namespaces and addresses at once":      `{namespaceSelector: {}, ipBlock: {cidr: 192.0.2.0/24}}`,
	"a range missing":                       `{ipBlock: {}}`,
	"an address for a range":                `{ipBlock: {cidr: 192.0.2.1}}`,
	"a range of 65 characters":              `{ipBlock: {cidr: "` + strings.Repeat("1", 65) + `"}}`,
	"an exception that is no range":         `{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.1]}}`,
	"an exception of 65 characters":         `{ipBlock: {cidr: 192.0.2.0/24, except: ["` + strings.Repeat("1", 65) + `"]}}`,
	"17 exceptions":                         `{ipBlock: {cidr: 192.0.2.0/24, except: [` + strings.Repeat("192.0.2.1/32, ", 17) + `]}}`,
	"a pod label with a blank":              `{podSelector: {matchLabels: {app: "the shop"}}}`,
	"a pod label of 64 characters":          `{podSelector: {matchLabels: {app: ` + strings.Repeat("a", 64) + `}}}`,
	"a pod label's key of 318 characters":   `{podSelector: {matchLabels: {` + strings.Repeat("a", 318) + `: a}}}`,
	"17 pod labels":                         `{podSelector: {matchLabels: {` + manyLabels(17) + `}}}`,
	"a namespace label that ends in a dash": `{namespaceSelector: {matchLabels: {team: shop-}}}`,
	"a namespace label of 64 characters":    `{namespaceSelector: {matchLabels: {team: ` + strings.Repeat("a", 64) + `}}}`,
	"17 namespace labels":                   `{namespaceSelector: {matchLabels: {` + manyLabels(17) + `}}}`,
	"expressions, which aren't supported":   `{podSelector: {matchExpressions: [{key: app, operator: Exists}]}}`,
	"ports, which are always the engine's":  `{podSelector: {}, ports: [{port: 80}]}`,
}

func manyLabels(count int) string {
	var list strings.Builder
	for i := range count {
		fmt.Fprintf(&list, "l%d: a, ", i)
	}
	return list.String()
}

// moreRefusedSpecs are those that are put together.
func moreRefusedSpecs() map[string]string {
	specs := map[string]string{
		"networkPolicy with 17 clients":     `{deploymentName: orders, dbtype: redis, networkPolicy: {from: [` + strings.Repeat("{podSelector: {}}, ", 17) + `]}}`,
		"storage size of 33 characters":     `{deploymentName: orders, dbtype: redis, storage: {size: "` + strings.Repeat("1", 31) + `Gi"}}`,
		"retention of what doesn't exist":   `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, retention: {whenGone: Delete}}}`,
		"retention without storage":         `{deploymentName: orders, dbtype: redis, retention: {whenDeleted: Delete}}`,
		"storageClassName of two mistakes":  `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: -Fast}}`,
		"an image without quotes, a number": `{deploymentName: orders, dbtype: redis, image: 8}`,
	}
	for what, peer := range refusedPeers {
		specs["networkPolicy with "+what] = `{deploymentName: orders, dbtype: redis, networkPolicy: {from: [` + peer + `]}}`
	}
	for _, part := range []string{"requests", "limits"} {
		for _, resource := range []string{"cpu", "memory", "ephemeral-storage"} {
			for what, amount := range refusedAmounts {
				specs[fmt.Sprintf("%s of %s %s", part, resource, what)] = fmt.Sprintf(`{deploymentName: orders, dbtype: redis, resources: {%s: {%s: %s}}}`, part, resource, amount)
			}
		}
	}
	return specs
}

// allRefusedSpecs are all specs that the API server refuses.
func allRefusedSpecs() map[string]string {
	refused := moreRefusedSpecs()
	maps.Copy(refused, refusedSpecs)
	maps.Copy(refused, refusedPodFields())
	return refused
}

// TestRefusals compares every message that a user may get from the API server
// with testdata/admission.golden, so that each is read by a person once.
func TestRefusals(t *testing.T) {
	client := env.dynamic.Resource(databaseResource).Namespace(newNamespace(t))
	messages := map[string]string{}
	for sentence, spec := range allRefusedSpecs() {
		_, err := client.Create(t.Context(), database(t, "orders", spec), strict)
		messages["create: "+sentence] = refusal(t, sentence, err)
	}
	_, err := client.Create(t.Context(), database(t, strings.Repeat("n", 64), `{deploymentName: orders, dbtype: redis}`), strict)
	messages["create: a name of 64 characters"] = refusal(t, "a name of 64 characters", err)

	for sentence, specs := range refusedChanges {
		stored := createDatabase(t, client, "orders", specs[0])
		changed := database(t, "orders", specs[1])
		changed.SetResourceVersion(stored.GetResourceVersion())
		_, err := client.Update(t.Context(), changed, metav1.UpdateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})
		messages["change: "+sentence] = refusal(t, sentence, err)
		if err := client.Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete the database: %v", err)
		}
	}
	compareWithGolden(t, "admission.golden", render(messages))
}

// acceptedSpecs are specs that the API server accepts, up to their bounds.
func acceptedSpecs() map[string]string {
	accepted := acceptedPodFields()
	maps.Copy(accepted, acceptedNetworkFields())
	maps.Copy(accepted, acceptedAmounts())
	for _, engine := range []string{"mysql", "mariadb", "postgresql", "redis", "valkey"} {
		accepted["the engine "+engine] = `{deploymentName: a, dbtype: ` + engine + `}`
	}
	maps.Copy(accepted, map[string]string{
		"the least":                               `{deploymentName: a, dbtype: redis}`,
		"a deploymentName of 40 characters":       `{deploymentName: ` + strings.Repeat("a", 40) + `, dbtype: redis}`,
		"one member":                              `{deploymentName: orders, dbtype: redis, replicas: 1}`,
		"ten members":                             `{deploymentName: orders, dbtype: redis, replicas: 10}`,
		"replication without a mode":              withField(`replication: {}`),
		"replication of one member":               withField(`replication: {mode: sync}`),
		"asynchronous replication":                `{deploymentName: orders, dbtype: mysql, replicas: 3, replication: {mode: async}}`,
		"synchronous replication":                 `{deploymentName: orders, dbtype: mysql, replicas: 2, replication: {mode: sync}}`,
		"a version of one number":                 `{deploymentName: orders, dbtype: redis, version: "8"}`,
		"a version of three numbers":              `{deploymentName: orders, dbtype: redis, version: "8.0.6"}`,
		"an image by digest":                      `{deploymentName: orders, dbtype: redis, image: "registry.example:5000/a/redis@sha256:` + strings.Repeat("0", 64) + `"}`,
		"the longest image":                       withField(`image: ` + strings.Repeat("r", 512)),
		"the longest version":                     withField(`version: 9999.9999.9999`),
		"the longest class":                       withField(`storage: {size: 1Gi, storageClassName: ` + strings.Repeat("a", 253) + `}`),
		"volumes kept":                            withField(`storage: {size: 1Gi, retention: {whenDeleted: Retain}}`),
		"volumes not kept":                        withField(`storage: {size: 1Gi, retention: {whenDeleted: Delete}}`),
		"volumes kept of members that go":         withField(`storage: {size: 1Gi, retention: {whenScaled: Retain}}`),
		"volumes not kept of members that go":     withField(`storage: {size: 1Gi, retention: {whenScaled: Delete}}`),
		"nothing said of what is kept":            withField(`storage: {size: 1Gi, retention: {}}`),
		"a Secret with the longest name there is": withField(`auth: {secretName: ` + strings.Repeat("a", 253) + `}`),
		"no parameters":                           withField(`config: {}`),
		"the least storage":                       `{deploymentName: orders, dbtype: redis, storage: {size: 64Mi}}`,
		"storage in bytes, as a number":           `{deploymentName: orders, dbtype: redis, storage: {size: 1073741824}}`,
		"storage as a fraction":                   `{deploymentName: orders, dbtype: redis, storage: {size: 0.1Gi}}`,
		"storage as a Go client writes 0.1Gi":     `{deploymentName: orders, dbtype: redis, storage: {size: 107374182400m}}`,
		"a class":                                 `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi, storageClassName: fast.example}}`,
		"empty resources":                         `{deploymentName: orders, dbtype: redis, resources: {}}`,
		"a request without a limit":               `{deploymentName: orders, dbtype: redis, resources: {requests: {cpu: "0.5"}}}`,
		"a limit without a request":               `{deploymentName: orders, dbtype: redis, resources: {limits: {memory: 1Gi}}}`,
		"requests equal to limits in other words": `{deploymentName: orders, dbtype: redis, resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {cpu: 1, memory: 1Gi}}}`,
		"a Secret of one's own":                   `{deploymentName: orders, dbtype: redis, auth: {secretName: mine.example}}`,
		"parameters":                              `{deploymentName: orders, dbtype: redis, config: {maxmemory: "100mb", a: "` + strings.Repeat("~", 256) + `", b: ""}}`,
		"64 parameters":                           `{deploymentName: orders, dbtype: redis, config: {` + manyLabels(64) + `}}`,
		"neither suspended nor shut down":         `{deploymentName: orders, dbtype: redis, suspend: false, shutdown: false}`,
		"suspended and shut down":                 `{deploymentName: orders, dbtype: redis, suspend: true, shutdown: true}`,
		"optional fields that are null":           `{deploymentName: orders, dbtype: redis, replicas: null, storage: null, version: null, resources: null}`,
	})
	return accepted
}

func TestAcceptedSpecs(t *testing.T) {
	client := env.dynamic.Resource(databaseResource).Namespace(newNamespace(t))
	for sentence, spec := range acceptedSpecs() {
		t.Run(sentence, func(t *testing.T) {
			stored := createDatabase(t, client, "orders", spec)
			replicas, _, err := unstructured.NestedInt64(stored.Object, "spec", "replicas")
			if err != nil || replicas < 1 {
				t.Errorf("stored replicas %d (%v), want the default 1 or what was asked for", replicas, err)
			}
			if err := client.Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the database: %v", err)
			}
		})
	}
}

func TestAcceptedChanges(t *testing.T) {
	client := env.dynamic.Resource(databaseResource).Namespace(newNamespace(t))
	for sentence, specs := range map[string][2]string{
		"more members":                   {`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`, `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}, replicas: 3}`},
		"replicas left out again":        {`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}, replicas: 3}`, `{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`},
		"several for more, no storage":   {`{deploymentName: orders, dbtype: redis, replicas: 2}`, `{deploymentName: orders, dbtype: redis, replicas: 5}`},
		"replicas said that were left":   {`{deploymentName: orders, dbtype: redis}`, `{deploymentName: orders, dbtype: redis, replicas: 1}`},
		"a mode added":                   {`{deploymentName: orders, dbtype: redis, replicas: 3}`, `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: async}}`},
		"another mode":                   {`{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: async}}`, `{deploymentName: orders, dbtype: redis, replicas: 3, replication: {mode: sync}}`},
		"another version":                {`{deploymentName: orders, dbtype: redis, version: "7.2"}`, `{deploymentName: orders, dbtype: redis, version: "8.0"}`},
		"an image added":                 {`{deploymentName: orders, dbtype: redis}`, `{deploymentName: orders, dbtype: redis, image: "redis:8.0"}`},
		"an image removed":               {`{deploymentName: orders, dbtype: redis, image: "redis:8.0"}`, `{deploymentName: orders, dbtype: redis}`},
		"resources added":                {`{deploymentName: orders, dbtype: redis}`, `{deploymentName: orders, dbtype: redis, resources: {limits: {memory: 1Gi}}}`},
		"resources removed":              {`{deploymentName: orders, dbtype: redis, resources: {limits: {memory: 1Gi}}}`, `{deploymentName: orders, dbtype: redis}`},
		"the same size in another unit":  {`{deploymentName: orders, dbtype: redis, storage: {size: 1Gi}}`, `{deploymentName: orders, dbtype: redis, storage: {size: 1024Mi}}`},
		"another field beside a storage": {`{deploymentName: orders, dbtype: redis, storage: {size: 2Gi}}`, `{deploymentName: orders, dbtype: redis, replicas: 2, storage: {size: 2Gi}}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := createDatabase(t, client, "orders", specs[0])
			changed := database(t, "orders", specs[1])
			changed.SetResourceVersion(stored.GetResourceVersion())
			if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
				t.Errorf("refused: %v", err)
			}
			if err := client.Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the database: %v", err)
			}
		})
	}
}

// database builds a DatabaseManager with the spec that a user might write, wrong
// types included; an empty text leaves the spec out.
func database(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(groupVersion.WithKind("DatabaseManager"))
	object.SetName(name)
	if spec == "" {
		return object
	}
	var fields any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("read the spec %s: %v", spec, err)
	}
	object.Object["spec"] = fields
	return object
}

func createDatabase(t *testing.T, client dynamic.ResourceInterface, name, spec string) *unstructured.Unstructured {
	t.Helper()
	stored, err := client.Create(t.Context(), database(t, name, spec), strict)
	if err != nil {
		t.Fatalf("create a database with the spec %s: %v", spec, err)
	}
	return stored
}

// refusal returns what the API server says is wrong, one line a cause.
func refusal(t *testing.T, sentence string, err error) string {
	t.Helper()
	var status apierrors.APIStatus
	switch {
	case err == nil:
		t.Errorf("%s: accepted, want a refusal", sentence)
		return "accepted"
	case !errors.As(err, &status):
		t.Fatalf("%s: %v", sentence, err)
	case !apierrors.IsInvalid(err):
		return status.Status().Message
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		if strings.HasPrefix(cause.Message, "Invalid value: null: some validation rules were not checked") {
			continue // it follows upon another cause, and says nothing of its own
		}
		lines = append(lines, cause.Field+": "+cause.Message)
	}
	slices.Sort(lines)
	return cmp.Or(strings.Join(lines, "\n"), status.Status().Message)
}

func render(messages map[string]string) string {
	text := &strings.Builder{}
	for _, title := range slices.Sorted(maps.Keys(messages)) {
		fmt.Fprintf(text, "# %s\n%s\n\n", title, messages[title])
	}
	return text.String()
}

// compareWithGolden compares a text with a file in testdata.
func compareWithGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatalf("write the golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the golden file: %v", err)
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		if i >= len(wantLines) || i >= len(gotLines) || wantLines[i] != gotLines[i] {
			t.Fatalf("%s differs from line %d on; read the new text, and if it is right run the test with -update.\n%s", path, i+1, got)
		}
	}
}
