// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// provider is what the Service Binding specification calls whoever provides
// the service.
const provider = "coolops"

// authSecret is the application's Secret. Its type and keys are those of the
// Service Binding specification, so that it can be bound to as it is.
func (r *rendering) authSecret() *corev1apply.SecretApplyConfiguration {
	return r.secret(r.authSecretName(), r.Recorded.Auth, nil).
		WithType(corev1.SecretType("servicebinding.io/" + string(r.Engine.Type())))
}

func (r *rendering) authData() map[string]string {
	host := fmt.Sprintf("%s.%s.svc", r.stem(), r.Database.Namespace)
	return map[string]string{
		"type":           string(r.Engine.Type()),
		"provider":       provider,
		"host":           host,
		"port":           strconv.Itoa(int(r.Engine.Port())),
		"username":       r.Engine.Username(),
		plan.PasswordKey: plan.PasswordMark,
		"database":       r.Engine.Database(),
		"uri":            r.Engine.URI(host, r.Engine.Username(), plan.PasswordInURIMark),
	}
}

// adminSecret is the operator's Secret. It remembers the resolved version too,
// for a database whose workload is gone.
func (r *rendering) adminSecret() *corev1apply.SecretApplyConfiguration {
	return r.secret(r.adminSecretName(), r.Recorded.Admin, r.resolution()).
		WithType(corev1.SecretTypeOpaque)
}

func (r *rendering) adminData() map[string]string {
	return map[string]string{
		"username":       r.Engine.AdminUsername(),
		plan.PasswordKey: plan.PasswordMark,
	}
}

// secret renders all but the data. A Secret that opens a volume stays as long
// as the volume does.
func (r *rendering) secret(name string, known plan.Credential, annotations map[string]string) *corev1apply.SecretApplyConfiguration {
	secret := corev1apply.Secret(name, r.Database.Namespace).WithLabels(r.dataLabels()).WithAnnotations(annotations)
	if known.IssuedAt != "" {
		secret.WithAnnotations(map[string]string{v1alpha1.AnnotationIssuedAt: known.IssuedAt})
	}
	if r.goesWithDatabase() {
		secret.WithOwnerReferences(r.owner())
	}
	return secret
}
