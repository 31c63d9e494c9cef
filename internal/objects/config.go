// SPDX-License-Identifier: Apache-2.0

package objects

import (
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// configMap holds the engine's files. It is immutable; other content has
// another name.
func (r *rendering) configMap() *corev1apply.ConfigMapApplyConfiguration {
	return corev1apply.ConfigMap(r.configName, r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithImmutable(true).
		WithData(r.files)
}
