// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Claimant is the database on whose behalf the ownership of an object is judged.
type Claimant struct {
	// UID and Name are those of the DatabaseManager.
	UID  types.UID
	Name string
	// Engine, Stem and DataID are what a retained object has to agree on. An
	// empty DataID agrees with any.
	Engine v1alpha1.DatabaseType
	Stem   string
	DataID string
	// Workload is the UID of the workload; empty if there is none. It controls
	// the volume claims that go with it.
	Workload types.UID
	// Holder is the UID of the volume claim that the database's own topology
	// names; empty if there is none, or none is known.
	Holder types.UID
	// Siblings are the names of other databases with the same stem, by UID.
	Siblings map[types.UID]string
}

// Claimant returns the claimant for the database of this snapshot.
func (s Snapshot) Claimant(dataID string) Claimant {
	var workload types.UID
	if object := s.Objects[s.workloadRef()]; object != nil && s.isControlled(object) {
		workload = object.GetUID()
	}
	return Claimant{
		Workload: workload,
		Holder:   s.ownHolder(),
		UID:      s.Database.UID,
		Name:     s.Database.Name,
		Engine:   s.Database.Spec.DBType,
		Stem:     s.Database.Spec.DeploymentName,
		DataID:   dataID,
		Siblings: s.Siblings,
	}
}

// ownHolder is the holder in the topology, provided that the topology is this
// database's own: one that was left behind names what a former one had.
func (s Snapshot) ownHolder() types.UID {
	topology, exists := s.Objects[s.topologyRef()].(*corev1.ConfigMap)
	if !exists || !s.isControlled(topology) && topology.Labels[v1alpha1.LabelOwnerUID] != string(s.Database.UID) {
		return ""
	}
	return types.UID(topology.Data[topologyHolderKey])
}

// Verdict says what an object is to a database.
type Verdict struct {
	// IsOurs is true if it is ours already.
	IsOurs bool
	// FormerOwner is set if it can be adopted, provided that no
	// DatabaseManager of this UID exists any more.
	FormerOwner types.UID
	// Problem is set if it is neither.
	Problem *Problem
}

// Judge decides what object is to the claimant, in the place of a child:
//
//	child      object                                        verdict
//	any        controller is this UID                        ours
//	owned      anything else                                 Conflict
//	claim      the topology names it, and it names no other  ours
//	retained   controlled by another, or not managed by us   Conflict
//	retained   other engine or stem                          RetainedDataMismatch
//	retained   owner-uid is this UID                         ours
//	retained   other data id                                 RetainedDataMismatch
//	retained   owner-uid is another UID                      adoptable
//
// A claim is also ours without our label managed-by, if the others are there:
// labels are what people change by hand, and it holds the data. A name alone never
// makes an object ours. What is ours has the data id that
// the topology has, or is given it: a claim that the workload's controller has
// just made, or one of a database that began again.
func (c Claimant) Judge(child Child, object metav1.Object) Verdict {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller != nil && controller.UID == c.Workload && child.Kind == KindVolumeClaim {
		controller = nil
	}
	isManaged := object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
	switch {
	case controller != nil && controller.UID == c.UID:
		return Verdict{IsOurs: true}
	case controller == nil && child.Kind == KindVolumeClaim && c.isHolder(object):
		return Verdict{IsOurs: true}
	case controller == nil && child.Kind == KindVolumeClaim && !isManaged && c.isLabelled(object):
		return Verdict{IsOurs: true}
	case controller != nil || !child.IsRetained || !isManaged:
		return Verdict{Problem: c.conflict(child.Ref, controller)}
	}
	return c.judgeRetained(child.Ref, object)
}

// isHolder tells whether a claim is the one that the topology names, and isn't
// labelled as another database's.
func (c Claimant) isHolder(claim metav1.Object) bool {
	owner := types.UID(claim.GetLabels()[v1alpha1.LabelOwnerUID])
	return c.Holder != "" && claim.GetUID() == c.Holder && (owner == "" || owner == c.UID)
}

// isLabelled tells whether the labels say that an object is this database's.
func (c Claimant) isLabelled(object metav1.Object) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.LabelOwnerUID] == string(c.UID) && labels[v1alpha1.LabelStem] == c.Stem && labels[v1alpha1.LabelEngine] == string(c.Engine)
}

// Unlabelled is the problem with a claim in the place of ours that no watch
// shows, and of which nothing says that it is ours. It may hold the data all the
// same, so nobody is told to delete it.
func (c Claimant) Unlabelled(claim Ref) *Problem {
	return &Problem{
		Reason: v1alpha1.ReasonConflict,
		Message: fmt.Sprintf("%s has lost the labels that say whose data it holds, and isn't the one that ConfigMap %s names; it was left as it is. "+
			"If it holds this database's, run: kubectl label --overwrite persistentvolumeclaim %s %s=%s %s=%s %s=%s %s=%s",
			claim, TopologyName(c.Stem), claim.Name, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue,
			v1alpha1.LabelEngine, c.Engine, v1alpha1.LabelStem, c.Stem, v1alpha1.LabelOwnerUID, c.UID),
		Retry: foreignRetry, IsAside: true,
	}
}

func (c Claimant) judgeRetained(ref Ref, object metav1.Object) Verdict {
	labels := object.GetLabels()
	// It is given its data id and its mark together, before the first write.
	isUnused := ref.Kind == KindVolumeClaim && labels[v1alpha1.LabelDataID] == "" && object.GetAnnotations()[v1alpha1.AnnotationInitialized] == ""
	owner := types.UID(labels[v1alpha1.LabelOwnerUID])
	switch {
	case labels[v1alpha1.LabelEngine] != string(c.Engine):
		return Verdict{Problem: c.mismatch(ref, fmt.Sprintf("holds data of the engine %q, not %q", labels[v1alpha1.LabelEngine], c.Engine))}
	case labels[v1alpha1.LabelStem] != c.Stem:
		return Verdict{Problem: c.mismatch(ref, fmt.Sprintf("belongs to the deploymentName %q, not %q", labels[v1alpha1.LabelStem], c.Stem))}
	case owner == c.UID:
		return Verdict{IsOurs: true}
	case owner == "" || labels[v1alpha1.LabelDataID] == "" && !isUnused:
		return Verdict{Problem: c.mismatch(ref, "doesn't say whose data it holds")}
	case c.DataID != "" && labels[v1alpha1.LabelDataID] != c.DataID && !isUnused:
		return Verdict{Problem: c.mismatch(ref, fmt.Sprintf("belongs to the data set %s, not %s", labels[v1alpha1.LabelDataID], c.DataID))}
	case c.Siblings[owner] != "":
		return Verdict{Problem: c.inUse(ref, c.Siblings[owner])}
	default:
		return Verdict{FormerOwner: owner}
	}
}

// conflict is the problem with an object that has nothing to do with us.
func (c Claimant) conflict(ref Ref, controller *metav1.OwnerReference) *Problem {
	switch {
	case controller == nil:
		return &Problem{
			Reason: v1alpha1.ReasonConflict,
			Message: fmt.Sprintf("%s exists and doesn't belong to this DatabaseManager; it was left as it is. Delete or rename it, "+
				"or create a DatabaseManager with another spec.deploymentName.", ref),
			Retry: foreignRetry,
		}
	case c.Siblings[controller.UID] != "":
		return c.inUse(ref, c.Siblings[controller.UID])
	default:
		return &Problem{
			Reason: v1alpha1.ReasonConflict,
			Message: fmt.Sprintf("%s exists and belongs to %s %s (UID %s); it was left as it is. It goes when its owner does; "+
				"otherwise create a DatabaseManager with another spec.deploymentName.", ref, controller.Kind, controller.Name, controller.UID),
			Retry: foreignRetry,
		}
	}
}

// inUse is the problem with an object of another database that exists.
func (c Claimant) inUse(ref Ref, sibling string) *Problem {
	return &Problem{
		Reason: v1alpha1.ReasonConflict,
		Message: fmt.Sprintf("%s belongs to the DatabaseManager %s, which has the same spec.deploymentName %q. "+
			"Delete this DatabaseManager, and create it again with another spec.deploymentName.", ref, sibling, c.Stem),
		Retry: foreignRetry,
	}
}

// mismatch is the problem with a retained object that doesn't fit.
func (c Claimant) mismatch(ref Ref, what string) *Problem {
	return &Problem{
		Reason: v1alpha1.ReasonRetainedDataMismatch,
		Message: fmt.Sprintf("%s was left behind and %s; it was left as it is. Either create a DatabaseManager with another spec.deploymentName, "+
			"or, if nobody needs that data, run: kubectl delete %s %s", ref, what, strings.ToLower(string(ref.Kind)), ref.Name),
		Retry: foreignRetry,
	}
}
