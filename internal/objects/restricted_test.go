// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func allEngines() []plan.Engine {
	return []plan.Engine{mysql.New(), mariadb.New(), postgresql.New(), redis.New(), redis.NewValkey()}
}

// FuzzEveryMemberPassesPodSecurityRestricted has the API server's own checks
// look at the pods of whatever spec is rendered.
func FuzzEveryMemberPassesPodSecurityRestricted(f *testing.F) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("orders-db", "", "8.0", true, int64(0), "p@ss")
	f.Add("db", "evil@sha256:0", "1", false, int64(1<<40), "\x00'\"")
	f.Fuzz(func(t *testing.T, stem, image, version string, durable bool, memory int64, password string) {
		for _, engine := range allEngines() {
			in := anInput(func(in *Input) {
				in.Engine = engine
				in.Database.Spec = v1alpha1.DatabaseManagerSpec{DeploymentName: stem, DBType: engine.Type(), Image: image, Version: version}
				in.Database.Spec.Resources = &v1alpha1.ResourceRequirements{
					Limits: &v1alpha1.ResourceAmounts{Memory: resource.NewQuantity(memory, resource.BinarySI)},
				}
				in.Recorded.Auth = plan.Credential{Password: password}
			})
			if durable {
				withStorage(&in)
			}
			desired, problem := Render(in)
			if problem != nil {
				continue
			}
			checkMember(t, evaluator, engine, desired)
		}
	})
}

func checkMember(t *testing.T, evaluator policy.Evaluator, engine plan.Engine, desired plan.Desired) {
	t.Helper()
	encoded, err := json.Marshal(desired.Workload().Fields)
	if err != nil {
		t.Fatal(err)
	}
	var workload struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := json.Unmarshal(encoded, &workload); err != nil {
		t.Fatal(err)
	}
	pod := workload.Spec.Template
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s: %s", engine.Type(), result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s: a token is mounted", engine.Type())
	}
	for _, container := range pod.Spec.Containers {
		isSecret := func(variable corev1.EnvVar) bool {
			return strings.Contains(strings.ToLower(variable.Name), "pass") || variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil
		}
		if slices.ContainsFunc(container.Env, isSecret) || len(container.EnvFrom) > 0 {
			t.Errorf("%s: a secret is in the environment: %v", engine.Type(), container.Env)
		}
		if security := container.SecurityContext; security == nil || security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
			t.Errorf("%s: its image can be written to", engine.Type())
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if secret := volume.Secret; secret != nil && (len(secret.Items) != 1 || secret.Items[0].Key != plan.PasswordKey) {
			t.Errorf("%s: of the Secret %s it is shown %v, want the password alone", engine.Type(), secret.SecretName, secret.Items)
		}
	}
}

// TestTheChecksOfRestrictedFindWhatIsForbidden keeps the test above able to fail.
func TestTheChecksOfRestrictedFindWhatIsForbidden(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}}
	if policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)).Allowed {
		t.Error("a privileged container is allowed")
	}
}
