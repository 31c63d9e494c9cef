//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"strings"
)

// withField is the least spec and one field, as a user might write it.
func withField(field string) string {
	return `{deploymentName: orders, dbtype: redis, ` + field + `}`
}

// longKey is the key of a label with a name of 63 characters, the most, and a
// domain of so many.
func longKey(domain int) string {
	return strings.Repeat("d", domain-4) + ".com/" + strings.Repeat("k", 63)
}

// refusedPodFields are wrong values of the fields about the Service and the
// pods, by what is wrong with them.
func refusedPodFields() map[string]string {
	fields := map[string]string{
		"service of another type":                        `service: {type: ExternalName}`,
		"service without selector":                       `service: {selector: {app: shop}}`,
		"service annotations of 17 keys":                 `service: {annotations: {` + manyLabels(17) + `}}`,
		"service annotations with a key of the operator": `service: {annotations: {coolops.cn/intent-hash: "0"}}`,
		"service annotations with a key of kubectl":      `service: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}`,
		"tolerations, 17 of them":                        `tolerations: [` + strings.Repeat("{key: a}, ", 17) + `]`,
		"topologySpreadConstraints, 9 of them":           `topologySpreadConstraints: [` + manySpreads(9) + `]`,
		"topologySpreadConstraints twice the same":       `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]`,
		"priorityClassName with a capital":               `priorityClassName: High`,
		"priorityClassName empty":                        `priorityClassName: ""`,
		"priorityClassName of 254 characters":            `priorityClassName: ` + strings.Repeat("a", 254),
		"imagePullSecrets, 9 of them":                    `imagePullSecrets: [` + manySecrets(9) + `]`,
		"imagePullSecrets twice the same":                `imagePullSecrets: [{name: a}, {name: a}]`,
		"imagePullSecrets without a name":                `imagePullSecrets: [{}]`,
		"imagePullSecrets with a capital":                `imagePullSecrets: [{name: Registry}]`,
		"imagePullSecrets of another namespace":          `imagePullSecrets: [{name: registry, namespace: other}]`,
		"imagePullSecrets with 254 characters":           `imagePullSecrets: [{name: ` + strings.Repeat("a", 254) + `}]`,
		"imagePullSecrets as texts":                      `imagePullSecrets: [registry]`,
		"nodeSelector with a value of 64 characters":     `nodeSelector: {disk: ` + strings.Repeat("a", 64) + `}`,
		"nodeSelector with a blank in a value":           `nodeSelector: {disk: "very fast"}`,
		"nodeSelector of 17 labels":                      `nodeSelector: {` + manyLabels(17) + `}`,
		"podLabels with a value of 64 characters":        `podLabels: {team: ` + strings.Repeat("a", 64) + `}`,
		"podLabels with a value that ends in a dash":     `podLabels: {team: shop-}`,
		"podLabels with a value that is a number":        `podLabels: {team: 7}`,
		"podLabels of 17 labels":                         `podLabels: {` + manyLabels(17) + `}`,
		"podAnnotations of 17 keys":                      `podAnnotations: {` + manyLabels(17) + `}`,
		"podAnnotations that unconfine a member":         `podAnnotations: {container.apparmor.security.beta.kubernetes.io/database: unconfined}`,
		"podAnnotations that make a member static":       `podAnnotations: {kubernetes.io/config.mirror: x}`,
		"podLabels with the role":                        `podLabels: {coolops.cn/role: primary}`,
		"podLabels with a name that we set":              `podLabels: {app.kubernetes.io/name: mine}`,
		"podLabels with a StatefulSet's":                 `podLabels: {statefulset.kubernetes.io/pod-name: db-0}`,
	}
	for what, toleration := range refusedTolerations {
		fields["tolerations with "+what] = `tolerations: [` + toleration + `]`
	}
	for what, constraint := range refusedSpreads {
		fields["topologySpreadConstraints with "+what] = `topologySpreadConstraints: [` + constraint + `]`
	}
	for field, shape := range map[string]string{
		"service annotations": `service: {annotations: {%q: a}}`, "nodeSelector": `nodeSelector: {%q: a}`,
		"podLabels": `podLabels: {%q: a}`, "podAnnotations": `podAnnotations: {%q: a}`,
	} {
		for what, key := range map[string]string{
			"an empty key": "", "a blank in a key": "a b", "two slashes in a key": "a/b/c", "a key of 64 characters": strings.Repeat("a", 64),
			"a key of 318 characters": longKey(254),
		} {
			fields[field+" with "+what] = fmt.Sprintf(shape, key)
		}
	}
	for field, shape := range map[string]string{"service annotations": `service: {annotations: {a: %q}}`, "podAnnotations": `podAnnotations: {a: %q}`} {
		fields[field+" with a value of 2049 characters"] = fmt.Sprintf(shape, strings.Repeat("a", 2049))
	}
	specs := map[string]string{}
	for what, field := range fields {
		specs[what] = withField(field)
	}
	return specs
}

// refusedTolerations are entries of spec.tolerations.
var refusedTolerations = map[string]string{
	"nothing in it":                     `{}`,
	"a value and no key":                `{value: "yes"}`,
	"a key with a blank":                `{key: "a b"}`,
	"a key of 318 characters":           `{key: ` + longKey(254) + `}`,
	"an operator that doesn't exist":    `{key: a, operator: Gt}`,
	"a value beside Exists":             `{key: a, operator: Exists, value: "yes"}`,
	"a value with a blank":              `{key: a, value: "oh yes"}`,
	"a value of 64 characters":          `{key: a, value: ` + strings.Repeat("a", 64) + `}`,
	"an effect that doesn't exist":      `{key: a, effect: Never}`,
	"seconds beside another effect":     `{key: a, effect: NoSchedule, tolerationSeconds: 5}`,
	"seconds that are negative":         `{key: a, effect: NoExecute, tolerationSeconds: -1}`,
	"seconds that are a text":           `{key: a, effect: NoExecute, tolerationSeconds: soon}`,
	"a field that Kubernetes hasn't":    `{key: a, taint: b}`,
	"no operator where it needs Exists": `{effect: NoExecute}`,
}

// refusedSpreads are entries of spec.topologySpreadConstraints.
var refusedSpreads = map[string]string{
	"nothing in it":                          `{}`,
	"a skew of 0":                            `{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}`,
	"a key with a blank":                     `{maxSkew: 1, topologyKey: "a zone", whenUnsatisfiable: DoNotSchedule}`,
	"an empty key":                           `{maxSkew: 1, topologyKey: "", whenUnsatisfiable: DoNotSchedule}`,
	"a key of 318 characters":                `{maxSkew: 1, topologyKey: ` + longKey(254) + `, whenUnsatisfiable: DoNotSchedule}`,
	"an action that doesn't exist":           `{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Wait}`,
	"a selector, which is always the same":   `{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}`,
	"an action missing, and a skew negative": `{maxSkew: -1, topologyKey: zone}`,
}

func manySpreads(count int) string {
	var list strings.Builder
	for i := range count {
		fmt.Fprintf(&list, "{maxSkew: 1, topologyKey: zone%d, whenUnsatisfiable: DoNotSchedule}, ", i)
	}
	return list.String()
}

func manySecrets(count int) string {
	var list strings.Builder
	for i := range count {
		fmt.Fprintf(&list, "{name: registry%d}, ", i)
	}
	return list.String()
}

// acceptedPodFields are values of the fields about the Service and the pods, up
// to their bounds.
func acceptedPodFields() map[string]string {
	accepted := map[string]string{
		"a Service in the cluster":            `service: {type: ClusterIP}`,
		"a Service at a port of every node":   `service: {type: NodePort}`,
		"a Service with a load balancer":      `service: {type: LoadBalancer, annotations: {service.beta.kubernetes.io/aws-load-balancer-type: nlb}}`,
		"a Service with nothing said":         `service: {}`,
		"16 annotations of a Service":         `service: {annotations: {` + manyLabels(16) + `}}`,
		"no annotations of a Service":         `service: {annotations: {}}`,
		"an annotation of 2048 characters":    `service: {annotations: {` + longKey(253) + `: ` + strings.Repeat("a", 2048) + `}}`,
		"the longest label of nodes":          `nodeSelector: {` + longKey(253) + `: ` + strings.Repeat("a", 63) + `}`,
		"16 labels of nodes":                  `nodeSelector: {` + manyLabels(16) + `}`,
		"labels that nodes have":              `nodeSelector: {kubernetes.io/arch: amd64, node-role.kubernetes.io/databases: ""}`,
		"no labels of nodes":                  `nodeSelector: {}`,
		"16 tolerations":                      `tolerations: [` + strings.Repeat("{key: a}, ", 16) + `]`,
		"every taint tolerated":               `tolerations: [{operator: Exists}]`,
		"a taint tolerated with all fields":   `tolerations: [{key: ` + longKey(253) + `, operator: Equal, value: ` + strings.Repeat("a", 63) + `, effect: NoExecute, tolerationSeconds: 0}]`,
		"a taint tolerated whatever it says":  `tolerations: [{key: databases, operator: Exists, value: "", effect: PreferNoSchedule}]`,
		"a taint that keeps pods away":        `tolerations: [{key: a, effect: NoSchedule}]`,
		"no tolerations":                      `tolerations: []`,
		"no constraints":                      `topologySpreadConstraints: []`,
		"no Secrets of a registry":            `imagePullSecrets: []`,
		"no labels of pods":                   `podLabels: {}`,
		"no annotations of pods":              `podAnnotations: {}`,
		"8 constraints":                       `topologySpreadConstraints: [` + manySpreads(8) + `]`,
		"two constraints of one key":          `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]`,
		"a constraint with the longest key":   `topologySpreadConstraints: [{maxSkew: 2147483647, topologyKey: ` + longKey(253) + `, whenUnsatisfiable: DoNotSchedule}]`,
		"a priority class":                    `priorityClassName: ` + strings.Repeat("a", 253),
		"8 Secrets of a registry":             `imagePullSecrets: [` + manySecrets(8) + `]`,
		"a Secret with the longest name":      `imagePullSecrets: [{name: ` + strings.Repeat("a", 253) + `}]`,
		"16 labels of pods":                   `podLabels: {` + manyLabels(16) + `}`,
		"the longest label of a pod":          `podLabels: {` + longKey(253) + `: ` + strings.Repeat("a", 63) + `}`,
		"a recommended label of others":       `podLabels: {app.kubernetes.io/part-of: shop, app.kubernetes.io/version: "1"}`,
		"16 annotations of pods":              `podAnnotations: {` + manyLabels(16) + `}`,
		"the longest annotation of a pod":     `podAnnotations: {` + longKey(253) + `: ` + strings.Repeat("ü", 2048) + `}`,
		"annotations that others read":        `podAnnotations: {prometheus.io/scrape: "true", cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}`,
		"an annotation that restarts members": `podAnnotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T12:00:00Z"}`,
		"all of them null": `service: null, nodeSelector: null, tolerations: null, topologySpreadConstraints: null, ` +
			`priorityClassName: null, imagePullSecrets: null, podLabels: null, podAnnotations: null`,
	}
	for sentence, field := range maps.Clone(accepted) {
		accepted[sentence] = withField(field)
	}
	return accepted
}
