// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The labels that every child carries.
const (
	// LabelName is the engine, such as "redis".
	LabelName = "app.kubernetes.io/name"

	// LabelInstance is the name of the DatabaseManager.
	LabelInstance = "app.kubernetes.io/instance"

	// LabelManagedBy is always ManagedByValue.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelComponent is ComponentDatabase; on the operator's own pods
	// ComponentOperator.
	LabelComponent = "app.kubernetes.io/component"

	// ManagedByValue is the value of LabelManagedBy on everything that the
	// operator makes, by which its informers select.
	ManagedByValue = "database-manager"

	// ComponentDatabase and ComponentOperator are the values of LabelComponent.
	ComponentDatabase = "database"
	ComponentOperator = "operator"
)

// The labels that say what a child is for.
const (
	// LabelRole is, on a pod, the member's role: primary or replica. Only the
	// operator sets it; the read-write Service follows it.
	LabelRole = "coolops.cn/role"

	// LabelEngine is the engine whose data a volume or Secret belongs to.
	LabelEngine = "coolops.cn/engine"

	// LabelStem is the spec.deploymentName whose child an object is.
	LabelStem = "coolops.cn/stem"

	// LabelOwnerUID is, on a volume claim, Secret or topology that outlives its
	// database, the UID of the DatabaseManager that uses it, or used it last.
	LabelOwnerUID = "coolops.cn/owner-uid"

	// LabelDataID is, on a volume claim, Secret or topology that outlives its database,
	// the identity of the data set: a Secret opens the volumes that carry the
	// same one.
	LabelDataID = "coolops.cn/data-id"
)

// LabelCredentials is set to CredentialsValue by a user on the Secret that
// spec.auth names: the operator sees no other Secret of a user's.
const (
	LabelCredentials = "coolops.cn/credentials"
	CredentialsValue = "true"
)

// AnnotationReinitialize is set by a user on a DatabaseManager whose data are
// lost, to let it begin again with nothing: its value is the data id that the
// condition names, so that it counts once.
const AnnotationReinitialize = "coolops.cn/reinitialize"

// AnnotationForceFailover is set by a user on a DatabaseManager whose primary is
// gone for good, where no other member is sure to have every acknowledged write:
// the most advanced one that answers is promoted. Its value is the epoch that the
// condition names, so that it counts once.
const AnnotationForceFailover = "coolops.cn/force-failover"

// AnnotationSwitchover is set by a user on a DatabaseManager to have another
// member become the primary: its value is the name of that member's pod. It counts
// once: when that member has become the primary, it is spent until it is changed, or
// taken away and set again.
const AnnotationSwitchover = "coolops.cn/switchover"

// AnnotationAdoptTemplate is set by a user on a DatabaseManager to have its
// members restarted in the form, and with the defaults, that new databases get:
// its value is the newest version of the pod template, so that it counts once.
const AnnotationAdoptTemplate = "coolops.cn/adopt-template"

// The annotations that the operator keeps its own records in.
const (
	// AnnotationTemplateVersion is, on a workload, the version of the pod
	// template that it was rendered with: a newer operator goes on rendering
	// that one until AnnotationAdoptTemplate names another.
	AnnotationTemplateVersion = "coolops.cn/template-version"

	// AnnotationResolvedVersion is, on a workload and on the operator's Secret, the engine version that the
	// database was created with or last changed to, so that a new default
	// changes no database that exists.
	AnnotationResolvedVersion = "coolops.cn/resolved-version"

	// AnnotationResolvedImage is, beside the resolved version, the upstream image that the
	// resolved version stood for when it was resolved; absent while spec.image
	// overrides it.
	AnnotationResolvedImage = "coolops.cn/resolved-image"

	// AnnotationResolvedDefaults is, beside the resolved version, what the operator's
	// flags gave the database when it was made, as JSON; absent if that is nothing.
	AnnotationResolvedDefaults = "coolops.cn/resolved-defaults"

	// AnnotationIssuedAt is, on a Secret that was lost and put back with the
	// password it had, when that password was first made: members that were
	// started since then know it. Without it, that is when the Secret was created.
	AnnotationIssuedAt = "coolops.cn/issued-at"

	// AnnotationInitialized is, on a volume claim, the identity of the data set
	// that was made on it, or brought to it. While it is there, an empty volume
	// is a loss, and not a beginning.
	AnnotationInitialized = "coolops.cn/initialized"

	// AnnotationIntentHash is the hash of what the operator last applied to a
	// child.
	AnnotationIntentHash = "coolops.cn/intent-hash"
)
