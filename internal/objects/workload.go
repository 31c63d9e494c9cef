// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// revisionHistory is how many old revisions of a template are kept. Nobody
// rolls back to one by hand, since the spec would be applied again.
const revisionHistory = 2

func (r *rendering) workloadKind() plan.Kind {
	if r.hasStatefulSet() {
		return plan.KindStatefulSet
	}
	return plan.KindDeployment
}

// members is how many members the workload runs.
func (r *rendering) members() int32 {
	if r.Database.Spec.Shutdown {
		return 0
	}
	return max(r.Recorded.Size, 1)
}

// wanted is how many members the spec asks for.
func (r *rendering) wanted() int32 {
	if r.Database.Spec.Replicas == nil {
		return 1
	}
	return *r.Database.Spec.Replicas
}

// isReplicated tells whether there are several members, or are to be: then the
// Services ask for roles. A Deployment's pod may exist beside the one that takes its
// place.
func (r *rendering) isReplicated() bool {
	return r.wanted() > 1 || r.isDurable() && max(r.Recorded.Size, r.Recorded.Existing) > 1
}

// hasStatefulSet tells whether members have names that stay.
func (r *rendering) hasStatefulSet() bool { return r.isDurable() || r.wanted() > 1 }

func (r *rendering) workload() any {
	if r.hasStatefulSet() {
		return r.statefulSet()
	}
	return r.deployment()
}

// deployment runs a member that keeps nothing. Recreate, because two of them
// behind one Service would answer with different data.
func (r *rendering) deployment() *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(r.stem(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithAnnotations(r.workloadAnnotations()).
		WithOwnerReferences(r.owner()).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(r.members()).
			WithRevisionHistoryLimit(revisionHistory).
			WithStrategy(appsv1apply.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())).
			WithTemplate(r.template.render(r)))
}

// statefulSet runs members with volumes. OnDelete, because the planner decides
// which member is replaced when; Parallel, because a member that can't start
// must not keep another from starting. Its controller removes volumes only
// together with the database, and only where the spec says so.
func (r *rendering) statefulSet() *appsv1apply.StatefulSetApplyConfiguration {
	whenDeleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if r.isDurable() && r.goesWithDatabase() {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	statefulSet := appsv1apply.StatefulSet(r.stem(), r.Database.Namespace).
		WithLabels(r.labels()).
		WithAnnotations(r.workloadAnnotations()).
		WithOwnerReferences(r.owner()).
		WithSpec(appsv1apply.StatefulSetSpec().
			WithReplicas(r.members()).
			WithRevisionHistoryLimit(revisionHistory).
			WithServiceName(r.membersServiceName()).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(appsv1apply.StatefulSetUpdateStrategy().WithType(appsv1.OnDeleteStatefulSetStrategyType)).
			WithPersistentVolumeClaimRetentionPolicy(appsv1apply.StatefulSetPersistentVolumeClaimRetentionPolicy().
				WithWhenDeleted(whenDeleted).
				WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())).
			WithTemplate(r.template.render(r)))
	if r.isDurable() {
		statefulSet.Spec.WithVolumeClaimTemplates(r.claimTemplate())
	}
	return statefulSet
}

func (r *rendering) workloadAnnotations() map[string]string {
	annotations := maps.Clone(r.resolution())
	annotations[v1alpha1.AnnotationTemplateVersion] = r.template.version
	return annotations
}

// claimTemplate carries the labels that a claim is recognised by later, but the
// data id: that can change, and this template can't.
func (r *rendering) claimTemplate() *corev1apply.PersistentVolumeClaimApplyConfiguration {
	storage := r.Database.Spec.Storage
	size := storage.Size.DeepCopy()
	// What a StatefulSet says of its claims can't be changed, and has no effect on
	// those that exist.
	if recorded, err := resource.ParseQuantity(r.Recorded.ClaimSize); err == nil {
		size = recorded
	}
	spec := corev1apply.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1apply.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	switch {
	case storage.StorageClassName != nil:
		spec.WithStorageClassName(*storage.StorageClassName)
	case r.defaults.StorageClass != "":
		spec.WithStorageClassName(r.defaults.StorageClass)
	}
	labels := r.dataLabels()
	delete(labels, v1alpha1.LabelDataID)
	template := &corev1apply.PersistentVolumeClaimApplyConfiguration{}
	return template.WithName(plan.DataVolume).WithLabels(labels).WithSpec(spec)
}

// claim is what we own of a claim that exists: its labels, and the mark of one
// with data.
func (r *rendering) claim(name string) *corev1apply.PersistentVolumeClaimApplyConfiguration {
	claim := corev1apply.PersistentVolumeClaim(name, r.Database.Namespace).WithLabels(r.dataLabels())
	if topology := r.Recorded.Topology; topology.State == plan.TopologyInitialized {
		claim.WithAnnotations(map[string]string{v1alpha1.AnnotationInitialized: topology.DataID})
	}
	return claim
}
