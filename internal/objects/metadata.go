// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func (r *rendering) stem() string               { return r.Database.Spec.DeploymentName }
func (r *rendering) membersServiceName() string { return plan.MembersServiceName(r.stem()) }

func (r *rendering) readOnlyServiceName() string { return r.stem() + "-ro" }
func (r *rendering) authSecretName() string      { return plan.AuthSecretName(r.stem()) }
func (r *rendering) adminSecretName() string     { return plan.AdminSecretName(r.stem()) }
func (r *rendering) liveName() string            { return r.stem() + "-live" }
func (r *rendering) isDurable() bool             { return r.Database.Spec.Storage != nil }

// configMapName carries a hash of the content: a ConfigMap is never edited in
// place, so that a member keeps the files that it was started with.
func configMapName(stem string, files map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// The zero bytes keep a name and a content from running together.
		for _, part := range []string{name, files[name]} {
			sum.Write([]byte(part))
			sum.Write([]byte{0})
		}
	}
	return stem + "-config-" + hex.EncodeToString(sum.Sum(nil)[:5])
}

// labels are those that every child carries.
func (r *rendering) labels() map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      string(r.Engine.Type()),
		v1alpha1.LabelInstance:  r.Database.Name,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
		v1alpha1.LabelComponent: v1alpha1.ComponentDatabase,
		v1alpha1.LabelStem:      r.stem(),
	}
}

// dataLabels are those of what a database with volumes needs to be opened
// again: they say whose data it is, to whoever comes next.
func (r *rendering) dataLabels() map[string]string {
	labels := r.labels()
	if !r.isDurable() {
		return labels
	}
	labels[v1alpha1.LabelEngine] = string(r.Engine.Type())
	labels[v1alpha1.LabelDataID] = r.Recorded.Topology.DataID
	labels[v1alpha1.LabelOwnerUID] = string(r.Database.UID)
	return labels
}

// goesWithDatabase tells whether nothing is to stay when the database is deleted.
func (r *rendering) goesWithDatabase() bool {
	return !r.isDurable() || r.Database.Spec.Storage.DeletesWithDatabase()
}

// selector selects the members' pods. It can't be changed on a workload, so
// it is as small as it can be.
func (r *rendering) selector() map[string]string {
	return map[string]string{
		v1alpha1.LabelComponent: v1alpha1.ComponentDatabase,
		v1alpha1.LabelStem:      r.stem(),
	}
}

// owner makes a child go when its database does, and not before its own
// dependents where the deletion is in the foreground.
func (r *rendering) owner() *metav1apply.OwnerReferenceApplyConfiguration {
	return metav1apply.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("DatabaseManager").
		WithName(r.Database.Name).
		WithUID(r.Database.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// resolution is what the workload, and the operator's Secret, remember of how
// the spec's defaults were resolved.
func (r *rendering) resolution() map[string]string {
	annotations := map[string]string{v1alpha1.AnnotationResolvedVersion: r.version}
	if r.resolvedImage != "" {
		annotations[v1alpha1.AnnotationResolvedImage] = r.resolvedImage
	}
	if r.recordedDefaults != noDefaults {
		annotations[v1alpha1.AnnotationResolvedDefaults] = r.recordedDefaults
	}
	return annotations
}
