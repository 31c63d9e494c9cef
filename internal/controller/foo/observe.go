// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// observe gathers what is known of one Foo. It reads memory only.
func (c *Controller) observe(foo *v1alpha1.Foo) (snapshot, error) {
	seen := snapshot{foo: foo, status: c.unstored.recall(foo)}
	deployment, err := c.caches.deploymentLister.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	switch {
	case err == nil:
		seen.deployment = deployment
	case !apierrors.IsNotFound(err):
		return snapshot{}, fmt.Errorf("read the Deployment %s: %w", foo.Spec.DeploymentName, err)
	}
	controlled, err := c.caches.deployments.ByTypedIndex(byControllerUID, string(foo.UID))
	if err != nil {
		return snapshot{}, fmt.Errorf("find the Deployments of %s: %w", foo.Name, err)
	}
	for _, deployment := range controlled {
		if deployment.Namespace == foo.Namespace && deployment.Name != foo.Spec.DeploymentName {
			seen.former = append(seen.former, deployment)
		}
	}
	slices.SortFunc(seen.former, func(a, b *appsv1.Deployment) int { return strings.Compare(a.Name, b.Name) })
	return seen, nil
}
