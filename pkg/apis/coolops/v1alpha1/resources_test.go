// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestResourcesInTheFormOfAContainer(t *testing.T) {
	for sentence, row := range map[string]struct {
		resources *v1alpha1.ResourceRequirements
		want      corev1.ResourceRequirements
	}{
		"nothing asked for":        {nil, corev1.ResourceRequirements{}},
		"an empty struct":          {&v1alpha1.ResourceRequirements{}, corev1.ResourceRequirements{}},
		"empty amounts":            {&v1alpha1.ResourceRequirements{Limits: &v1alpha1.ResourceAmounts{}}, corev1.ResourceRequirements{}},
		"a request, and no limits": {&v1alpha1.ResourceRequirements{Requests: &v1alpha1.ResourceAmounts{CPU: new(resource.MustParse("1"))}}, corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}},
		"a zero is asked for, too": {&v1alpha1.ResourceRequirements{Requests: &v1alpha1.ResourceAmounts{CPU: new(resource.MustParse("0"))}}, corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}}},
		"every kind of limit": {
			&v1alpha1.ResourceRequirements{Limits: &v1alpha1.ResourceAmounts{
				CPU:              new(resource.MustParse("1500m")),
				Memory:           new(resource.MustParse("2Gi")),
				EphemeralStorage: new(resource.MustParse("3G")),
			}},
			corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceCPU:              resource.MustParse("1500m"),
				corev1.ResourceMemory:           resource.MustParse("2Gi"),
				corev1.ResourceEphemeralStorage: resource.MustParse("3G"),
			}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := row.resources.ToCore(); !equality.Semantic.DeepEqual(got, row.want) {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}
