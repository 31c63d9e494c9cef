// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// podLabels are the user's, and ours, which win.
func (r *rendering) podLabels() map[string]string {
	labels := texts(r.Database.Spec.PodLabels)
	maps.Copy(labels, r.labels())
	return labels
}

// podSpec is the part of a pod's spec that says where it runs, and by whose
// leave its image is pulled.
func (r *rendering) podSpec() *corev1apply.PodSpecApplyConfiguration {
	spec := r.Database.Spec
	pod := corev1apply.PodSpec().
		WithImagePullSecrets(r.imagePullSecrets()...).
		WithNodeSelector(texts(spec.NodeSelector)).
		WithTolerations(r.tolerations()...).
		WithTopologySpreadConstraints(r.spreadConstraints()...)
	if r.hasStatefulSet() {
		pod.WithAffinity(corev1apply.Affinity().WithPodAntiAffinity(r.antiAffinity()))
	}
	if spec.PriorityClassName != "" {
		pod.WithPriorityClassName(spec.PriorityClassName)
	}
	return pod
}

// antiAffinity keeps members on different nodes, where there are enough.
func (r *rendering) antiAffinity() *corev1apply.PodAntiAffinityApplyConfiguration {
	return corev1apply.PodAntiAffinity().WithPreferredDuringSchedulingIgnoredDuringExecution(
		corev1apply.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(corev1apply.PodAffinityTerm().
			WithTopologyKey(corev1.LabelHostname).
			WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector()))))
}

func (r *rendering) imagePullSecrets() []*corev1apply.LocalObjectReferenceApplyConfiguration {
	names := r.defaults.ImagePullSecrets
	if own := r.Database.Spec.ImagePullSecrets; len(own) > 0 {
		names = nil
		for _, secret := range own {
			names = append(names, secret.Name)
		}
	}
	var references []*corev1apply.LocalObjectReferenceApplyConfiguration
	for _, name := range names {
		references = append(references, corev1apply.LocalObjectReference().WithName(name))
	}
	return references
}

func (r *rendering) tolerations() []*corev1apply.TolerationApplyConfiguration {
	tolerations := r.defaults.Tolerations
	if own := r.Database.Spec.Tolerations; len(own) > 0 {
		tolerations = own
	}
	var rendered []*corev1apply.TolerationApplyConfiguration
	for _, toleration := range tolerations {
		rendered = append(rendered, tolerationOf(toleration))
	}
	return rendered
}

func tolerationOf(toleration v1alpha1.Toleration) *corev1apply.TolerationApplyConfiguration {
	rendered := corev1apply.Toleration()
	if toleration.Key != "" {
		rendered.WithKey(toleration.Key)
	}
	if toleration.Operator != "" {
		rendered.WithOperator(corev1.TolerationOperator(toleration.Operator))
	}
	if toleration.Value != "" {
		rendered.WithValue(string(toleration.Value))
	}
	if toleration.Effect != "" {
		rendered.WithEffect(corev1.TaintEffect(toleration.Effect))
	}
	if toleration.TolerationSeconds != nil {
		rendered.WithTolerationSeconds(*toleration.TolerationSeconds)
	}
	return rendered
}

// spreadConstraints count the members of this database.
func (r *rendering) spreadConstraints() []*corev1apply.TopologySpreadConstraintApplyConfiguration {
	var rendered []*corev1apply.TopologySpreadConstraintApplyConfiguration
	for _, constraint := range r.Database.Spec.TopologySpreadConstraints {
		rendered = append(rendered, corev1apply.TopologySpreadConstraint().
			WithMaxSkew(constraint.MaxSkew).
			WithTopologyKey(constraint.TopologyKey).
			WithWhenUnsatisfiable(corev1.UnsatisfiableConstraintAction(constraint.WhenUnsatisfiable)).
			WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())))
	}
	return rendered
}

// texts returns the map with plain values, a copy that is never nil.
func texts[V ~string](values map[string]V) map[string]string {
	plain := make(map[string]string, len(values))
	for key, value := range values {
		plain[key] = string(value)
	}
	return plain
}

var (
	reservedServiceKey = regexp.MustCompile(v1alpha1.ReservedServiceKey)
	reservedPodKey     = regexp.MustCompile(v1alpha1.ReservedPodKey)
)

// checkKeys looks at the keys of the spec's maps as the schema does, which an
// object that was stored earlier has never met, and more closely.
func checkKeys(spec v1alpha1.DatabaseManagerSpec) *plan.Problem {
	var annotations map[string]v1alpha1.AnnotationValue
	if spec.Service != nil {
		annotations = spec.Service.Annotations
	}
	for _, part := range []struct {
		field    string
		keys     []string
		reserved *regexp.Regexp
	}{
		{"spec.service.annotations", slices.Sorted(maps.Keys(annotations)), reservedServiceKey},
		{"spec.nodeSelector", slices.Sorted(maps.Keys(spec.NodeSelector)), nil},
		{"spec.podLabels", slices.Sorted(maps.Keys(spec.PodLabels)), reservedPodKey},
		{"spec.podAnnotations", slices.Sorted(maps.Keys(spec.PodAnnotations)), reservedPodKey},
	} {
		for _, key := range part.keys {
			if part.reserved != nil && part.reserved.MatchString(key) {
				return invalid("%s has the key %q, which belongs to the operator or to Kubernetes; others are allowed, such as example.com/team: take it out", part.field, key)
			}
			if problems := validation.IsQualifiedName(key); len(problems) > 0 {
				return invalid("%s has the key %q; %s: take it out, or correct it", part.field, key, strings.Join(problems, "; "))
			}
		}
	}
	return nil
}
