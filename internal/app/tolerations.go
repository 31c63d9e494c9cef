// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// ParseTolerations reads tolerations that are written as kubectl writes taints:
//
//	dedicated=databases:NoSchedule  a taint of that value
//	dedicated:NoSchedule            one of any value
func ParseTolerations(texts []string) ([]v1alpha1.Toleration, error) {
	var tolerations []v1alpha1.Toleration
	for _, text := range texts {
		toleration, err := parseToleration(text)
		if err != nil {
			return nil, fmt.Errorf("%q isn't a toleration: %w; write for example dedicated=databases:NoSchedule, or dedicated:NoSchedule for any value", text, err)
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations, nil
}

func parseToleration(text string) (v1alpha1.Toleration, error) {
	taint, effect, hasEffect := strings.Cut(text, ":")
	if !hasEffect {
		return v1alpha1.Toleration{}, errors.New("it has no effect")
	}
	key, value, hasValue := strings.Cut(taint, "=")
	toleration := v1alpha1.Toleration{Key: key, Operator: v1alpha1.TolerationOperatorExists, Effect: v1alpha1.TaintEffect(effect)}
	if hasValue {
		toleration.Operator, toleration.Value = v1alpha1.TolerationOperatorEqual, v1alpha1.LabelValue(value)
	}
	switch toleration.Effect {
	case v1alpha1.TaintEffectNoSchedule, v1alpha1.TaintEffectPreferNoSchedule, v1alpha1.TaintEffectNoExecute:
	default:
		return toleration, fmt.Errorf("its effect is %q, and allowed are NoSchedule, PreferNoSchedule and NoExecute", effect)
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		return toleration, fmt.Errorf("%q can't be the key of a taint", key)
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		return toleration, fmt.Errorf("%q can't be the value of a taint", value)
	}
	return toleration, nil
}
