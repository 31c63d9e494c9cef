// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionSynced is True while the Deployment says what the Foo asks for. How
// many of its pods are available is another matter, which
// status.availableReplicas tells.
const ConditionSynced = "Synced"

// The reasons of ConditionSynced. Each is also the reason of the event that
// tells when it came about. Synced and ErrResourceExists are the words of
// kubernetes/sample-controller.
const (
	// ReasonSynced (True): the Deployment says what the Foo asks for.
	ReasonSynced = "Synced"

	// ReasonErrResourceExists: a Deployment of that name exists and isn't this
	// Foo's; it is left as it is.
	ReasonErrResourceExists = "ErrResourceExists"

	// ReasonInvalidSpec: the spec can't be carried out, for example because it
	// names no Deployment; nothing is changed.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonWaitingForDeletion: the Deployment is being deleted, and is made
	// again when it has gone.
	ReasonWaitingForDeletion = "WaitingForDeletion"

	// ReasonStepRefused: the API server refused a step, for example because a
	// quota is used up or a right is missing; it is tried again.
	ReasonStepRefused = "StepRefused"
)
