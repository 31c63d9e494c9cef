//go:build successor

// SPDX-License-Identifier: Apache-2.0

package objects

import corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

// nextTemplates are what the build after this one might bring: tests of an
// upgrade are built with the tag successor, and a release never is.
func nextTemplates() []template {
	return []template{{"2", (*rendering).nextPodTemplate}}
}

// nextPodTemplate gives members longer to stop.
func (r *rendering) nextPodTemplate() *corev1apply.PodTemplateSpecApplyConfiguration {
	next := r.podTemplate()
	next.Spec.WithTerminationGracePeriodSeconds(grace + 10)
	return next
}
