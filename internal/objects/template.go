// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"

	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// template is one form of the pod template. A workload records the version of
// its own, and is rendered in that form by newer operators too, so that an
// upgrade restarts nobody. Once released, a form never changes: a change is a
// new form beside the old.
type template struct {
	version string
	render  func(*rendering) *corev1apply.PodTemplateSpecApplyConfiguration
	// files are those that a member of this form starts with. They belong to the
	// form, since another file has another name, which the template mentions.
	files func(engine plan.Engine, fixed plan.Settings) map[string]string
}

// templates returns the forms that there are, oldest first. New databases get
// the last.
func templates() []template {
	return append([]template{{"1", (*rendering).podTemplate, plan.Engine.Files}}, nextTemplates()...)
}

func newestTemplate() template {
	all := templates()
	return all[len(all)-1]
}

// resolveTemplate settles the form of the pod template.
func (r *rendering) resolveTemplate() *plan.Problem {
	r.template = newestTemplate()
	if r.Recorded.TemplateVersion == "" {
		return nil
	}
	for _, known := range templates() {
		if known.version != r.Recorded.TemplateVersion {
			continue
		}
		if !r.adopts() {
			r.template = known
		}
		return nil
	}
	return &plan.Problem{
		Reason: v1alpha1.ReasonTemplateUnknown,
		Message: fmt.Sprintf("the workload was rendered in the form %q, which this operator doesn't know: run the operator that made it, or a newer one",
			r.Recorded.TemplateVersion),
	}
}

// adopts tells whether the user asks for the newest form in place of the one
// that the workload has: by its version, so that it counts once.
func (r *rendering) adopts() bool {
	newest := newestTemplate().version
	return r.Recorded.TemplateVersion != "" && r.Recorded.TemplateVersion != newest &&
		r.Database.Annotations[v1alpha1.AnnotationAdoptTemplate] == newest
}
