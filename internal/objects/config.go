// SPDX-License-Identifier: Apache-2.0

package objects

import (
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/internal/plan"
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

// liveConfigMap holds the parameters that a running server takes, all of them.
// It is changed in place, and mounted as a folder, which the kubelet keeps up to
// date: so a member that starts for whatever reason reads the newest.
func (r *rendering) liveConfigMap() *corev1apply.ConfigMapApplyConfiguration {
	return corev1apply.ConfigMap(r.liveName(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithOwnerReferences(r.owner()).
		WithData(r.liveFiles)
}

// topology holds where the data are, and what their identity is. It stays as
// long as a volume does: without it, an empty volume would be taken for new.
func (r *rendering) topology() *corev1apply.ConfigMapApplyConfiguration {
	topology := corev1apply.ConfigMap(plan.TopologyName(r.stem()), r.Database.Namespace).
		WithLabels(r.dataLabels()).
		WithData(r.Recorded.Topology.Data())
	if r.goesWithDatabase() {
		topology.WithOwnerReferences(r.owner())
	}
	return topology
}
