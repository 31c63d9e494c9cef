//go:build successor

// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"

	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/internal/plan"
)

// nextTemplates are what the build after this one might bring: tests of an
// upgrade are built with the tag successor, and a release never is.
func nextTemplates() []template {
	return []template{{"2", (*rendering).nextPodTemplate, nextFiles}}
}

// nextPodTemplate gives members longer to stop.
func (r *rendering) nextPodTemplate() *corev1apply.PodTemplateSpecApplyConfiguration {
	next := r.podTemplate()
	next.Spec.WithTerminationGracePeriodSeconds(grace + 10)
	return next
}

// nextFiles has one more.
func nextFiles(engine plan.Engine, fixed plan.Settings) map[string]string {
	files := maps.Clone(engine.Files(fixed))
	files["next"] = "Nothing reads this.\n"
	return files
}
