// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The types of the conditions in status.conditions.
const (
	// ConditionReady is True when the database answers queries with the
	// credentials of its Secret and has as many members as were asked for. Its
	// reason is the one word that says how the database is.
	ConditionReady = "Ready"

	// ConditionProgressing is True while the operator or Kubernetes is still
	// carrying out the spec.
	ConditionProgressing = "Progressing"

	// ConditionDegraded is True while something is wrong that doesn't pass
	// without help, or makes the database less than what was asked for.
	ConditionDegraded = "Degraded"

	// ConditionTransportEncrypted is True when connections to the database are
	// encrypted.
	ConditionTransportEncrypted = "TransportEncrypted"
)

// Reasons of a database that does what was asked.
const (
	// ReasonAvailable (Ready=True): every member that was asked for answers queries.
	ReasonAvailable = "Available"

	// ReasonUpToDate (Progressing=False): the spec is carried out.
	ReasonUpToDate = "UpToDate"

	// ReasonAsExpected (Degraded=False): nothing is wrong.
	ReasonAsExpected = "AsExpected"

	// ReasonEphemeralStorage (Ready=True): every member answers queries, and
	// the data goes when the pod does, because spec.storage is absent.
	ReasonEphemeralStorage = "EphemeralStorage"
)

// Reasons of a database that is on its way.
const (
	// ReasonCreating: the children are being created, or the first member
	// hasn't answered yet.
	ReasonCreating = "Creating"

	// ReasonRolling: members are being replaced, to carry out a change of the spec.
	ReasonRolling = "Rolling"

	// ReasonVolumeGrowing: a member's volume is being made larger; it serves
	// meanwhile.
	ReasonVolumeGrowing = "VolumeGrowing"

	// ReasonSuspended (Progressing=False): spec.suspend is set, and nothing is
	// changed.
	ReasonSuspended = "Suspended"

	// ReasonShutDown: spec.shutdown is set; there are no members, and their
	// volumes are kept.
	ReasonShutDown = "ShutDown"

	// ReasonWaitingForMember: a member's pod is missing, starting or not ready.
	ReasonWaitingForMember = "WaitingForMember"

	// ReasonReplicaBehind: a replica is being made, or hasn't all of the primary's
	// data yet.
	ReasonReplicaBehind = "ReplicaBehind"

	// ReasonSyncNotEstablished: no replica has all of the primary's data, so that
	// what is acknowledged is on the primary alone.
	ReasonSyncNotEstablished = "SyncNotEstablished"

	// ReasonSwitchoverWaiting: another member is to become the primary, and none
	// has all of the primary's data.
	ReasonSwitchoverWaiting = "SwitchoverWaiting"
)

// Reasons of a database that needs help; each message says which.
const (
	// ReasonEngineNotResponding: a member's pod runs, and the engine in it
	// doesn't answer a query with the Secret's credentials.
	ReasonEngineNotResponding = "EngineNotResponding"

	// ReasonConflict: an object of a child's name exists and isn't ours; it is
	// left as it is.
	ReasonConflict = "Conflict"

	// ReasonRetainedDataMismatch: a volume or Secret that an earlier database
	// left behind doesn't fit this one, so it isn't touched.
	ReasonRetainedDataMismatch = "RetainedDataMismatch"

	// ReasonDataLost: a member's volume is empty, and data were on it. Nothing is
	// made in its place until the user says so.
	ReasonDataLost = "DataLost"

	// ReasonQuorumLost: the primary is away, and too few of the others answer to
	// know which of them has every acknowledged write: none is promoted.
	ReasonQuorumLost = "QuorumLost"

	// ReasonPrimaryUnreachable: the primary doesn't answer, nobody says that it has
	// stopped, and another one in its place would lose what it acknowledges.
	ReasonPrimaryUnreachable = "PrimaryUnreachable"

	// ReasonDataRefused: what is on a member's volume is of another engine or a
	// newer version, or of unknown origin, or in use by another server.
	ReasonDataRefused = "DataRefused"

	// ReasonTopologyUnreadable: the ConfigMap that says where the data are can't
	// be read; nothing is changed.
	ReasonTopologyUnreadable = "TopologyUnreadable"

	// ReasonInvalidSpec: the spec passed the schema and still can't be carried
	// out, for example a version that the operator doesn't know; nothing is changed.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonSecretMissing: a Secret that the database needs is gone or unreadable.
	ReasonSecretMissing = "SecretMissing"

	// ReasonSecretNotLabelled: the Secret that spec.auth names lacks the label
	// without which the operator doesn't see it.
	ReasonSecretNotLabelled = "SecretNotLabelled"

	// ReasonPasswordRefused (Degraded=True): the engine doesn't take the password
	// that stands in the Secret, and keeps the former one.
	ReasonPasswordRefused = "PasswordRefused"

	// ReasonConfigRefused: the server doesn't take a value of spec.config. Where
	// only Degraded has it, the members run with the former value.
	ReasonConfigRefused = "ConfigRefused"

	// ReasonExpansionRefused (Degraded=True): a volume isn't allowed to grow.
	ReasonExpansionRefused = "ExpansionRefused"

	// ReasonTemplateUnknown: the workload was rendered by a newer operator, in a
	// form that this one doesn't know; nothing is changed.
	ReasonTemplateUnknown = "TemplateUnknown"

	// ReasonStepRefused: the API server refused a step, for example because a
	// quota is used up or a right is missing; it is tried again.
	ReasonStepRefused = "StepRefused"

	// ReasonPodRefused: a member's pod can't be created or started, for example
	// because an admission policy refuses it.
	ReasonPodRefused = "PodRefused"

	// ReasonPodUnschedulable: no node takes a member's pod.
	ReasonPodUnschedulable = "PodUnschedulable"

	// ReasonImagePullFailed: a member's image can't be pulled.
	ReasonImagePullFailed = "ImagePullFailed"

	// ReasonCrashLooping: a member's container ends again and again.
	ReasonCrashLooping = "CrashLooping"

	// ReasonVolumePending: a member's volume claim isn't bound.
	ReasonVolumePending = "VolumePending"
)

// ReasonNotEncrypted (TransportEncrypted=False): connections are in clear text,
// because this version of the operator sets up no TLS.
const ReasonNotEncrypted = "NotEncrypted"

// EventSecretLost is the reason of the event that tells of a generated Secret
// that was deleted, and what became of it.
const EventSecretLost = "SecretLost"

// EventEphemeralDataLost is the reason of the event that tells of a database
// without storage whose pod is gone, and which begins again with nothing.
const EventEphemeralDataLost = "EphemeralDataLost"

// EventReinitialized is the reason of the event that tells of a database that
// begins again with nothing, because the user said so.
const EventReinitialized = "Reinitialized"
