// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"coolops.cn/database-manager/internal/intent"
	coolopsv1alpha1 "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// What the pods run, as in kubernetes/sample-controller.
const (
	containerName = "nginx"
	image         = "nginx:latest"
)

// Renderer turns a valid Foo into the Deployment that it asks for: exactly the
// fields that we own. It is pure.
type Renderer func(foo *v1alpha1.Foo) *appsv1apply.DeploymentApplyConfiguration

// Render is the Renderer of this version of the operator.
func Render(foo *v1alpha1.Foo) *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(foo.Spec.DeploymentName, foo.Namespace).
		WithLabels(selector(foo)).
		// By this one our informers select. Pods and ReplicaSets don't carry it:
		// nothing is read from them.
		WithLabels(map[string]string{coolopsv1alpha1.LabelManagedBy: coolopsv1alpha1.ManagedByValue}).
		WithOwnerReferences(owner(foo)).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(replicas(foo)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(selector(foo))).
			WithTemplate(corev1apply.PodTemplateSpec().
				WithLabels(selector(foo)).
				WithSpec(corev1apply.PodSpec().WithContainers(corev1apply.Container().
					WithName(containerName).
					WithImage(image).
					// The default for the tag latest is Always: no pod would start
					// again while the registry is down.
					WithImagePullPolicy(corev1.PullIfNotPresent)))))
}

// selector selects the pods. It can't be changed on a Deployment, and the name
// of a Foo can't either.
func selector(foo *v1alpha1.Foo) map[string]string {
	return map[string]string{v1alpha1.LabelApp: v1alpha1.AppNginx, v1alpha1.LabelController: foo.Name}
}

// owner makes the Deployment go when its Foo does.
func owner(foo *v1alpha1.Foo) *metav1apply.OwnerReferenceApplyConfiguration {
	return metav1apply.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Foo").
		WithName(foo.Name).
		WithUID(foo.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// replicas returns spec.replicas, with its default.
func replicas(foo *v1alpha1.Foo) int32 {
	if foo.Spec.Replicas == nil {
		return v1alpha1.DefaultReplicas
	}
	return *foo.Spec.Replicas
}

// check finds what keeps a Foo from being rendered: what the articles' schema
// lets in and no Deployment can be made of. Nothing is tried that can only be
// refused.
func check(foo *v1alpha1.Foo) *problem {
	deploymentName := foo.Spec.DeploymentName
	switch {
	case deploymentName == "":
		return invalid("spec.deploymentName is empty; nothing was changed: set it to the name of the Deployment that is to be made")
	case len(deploymentName) > v1alpha1.MaxDeploymentNameLength || len(validation.IsDNS1123Subdomain(deploymentName)) > 0:
		return invalid("spec.deploymentName is %q; nothing was changed: allowed are lower-case letters, digits, '-' and '.', "+
			"beginning and ending with a letter or digit, at most %d characters", deploymentName, v1alpha1.MaxDeploymentNameLength)
	case replicas(foo) < v1alpha1.MinReplicas || replicas(foo) > v1alpha1.MaxReplicas:
		return invalid("spec.replicas is %d; nothing was changed: allowed are %d to %d", replicas(foo), v1alpha1.MinReplicas, v1alpha1.MaxReplicas)
	case len(foo.Name) > validation.LabelValueMaxLength:
		return invalid("metadata.name has %d characters; nothing was changed: it is the value of the label %s, which takes %d. "+
			"Create a Foo with a shorter name", len(foo.Name), v1alpha1.LabelController, validation.LabelValueMaxLength)
	default:
		return nil
	}
}

func invalid(format string, args ...any) *problem {
	return &problem{reason: v1alpha1.ReasonInvalidSpec, message: fmt.Sprintf(format, args...)}
}

// wanted is the Deployment that a Foo asks for.
type wanted struct {
	name string
	// fields are the fields that we own, with their hash in an annotation.
	fields map[string]any
	hash   string
}

// seal turns what was rendered into its fields, together with their hash.
func seal(rendered *appsv1apply.DeploymentApplyConfiguration) (wanted, error) {
	fields, err := intent.Fields(rendered)
	if err != nil {
		return wanted{}, err
	}
	hash, err := intent.Hash(fields)
	if err != nil {
		return wanted{}, err
	}
	if err := unstructured.SetNestedField(fields, hash, "metadata", "annotations", coolopsv1alpha1.AnnotationIntentHash); err != nil {
		return wanted{}, fmt.Errorf("record the hash of the intent: %w", err)
	}
	return wanted{name: *rendered.GetName(), fields: fields, hash: hash}, nil
}
