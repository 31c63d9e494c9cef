// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
)

// observe gathers what is known of one Foo. It reads memory only.
func (c *Controller) observe(foo *v1alpha1.Foo) snapshot {
	seen := snapshot{foo: foo, status: c.unstored.recall(foo)}
	seen.deployment, _ = c.caches.deployments.Get(cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName))
	for _, deployment := range c.caches.deployments.ByIndex(foo.Namespace, byControllerUID, string(foo.UID)) {
		if deployment.Namespace == foo.Namespace && deployment.Name != foo.Spec.DeploymentName {
			seen.former = append(seen.former, deployment)
		}
	}
	slices.SortFunc(seen.former, func(a, b *appsv1.Deployment) int { return strings.Compare(a.Name, b.Name) })
	return seen
}
