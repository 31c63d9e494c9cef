// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Snapshot is all that was observed of one database at one moment. Its objects
// are shared with the caches and never changed.
type Snapshot struct {
	// Database is the resource itself.
	Database *v1alpha1.DatabaseManager

	// Objects are the objects of this stem that the caches hold, whoever owns
	// them: candidates for being our children.
	Objects map[Ref]metav1.Object

	// Members are the pods whose chain of owners reaches our workload and that
	// haven't ended, ordered by name.
	Members []Member

	// Ended are the pods of that kind that have, ordered by name: nothing runs in them
	// any more.
	Ended []*corev1.Pod

	// Strangers are pods that aren't members and that our Services select all the
	// same, ordered by name.
	Strangers []*corev1.Pod

	// Awaiting are pods of our StatefulSet's names that no StatefulSet controls at
	// the moment, ordered by name: it takes them over.
	Awaiting []*corev1.Pod

	// AbsentSince is since when the workload's controller has made no pod, though
	// it has seen what is wanted; zero if it has.
	AbsentSince time.Time

	// UnservedSince is since when the member that the topology names hasn't taken
	// writes, as far as anybody has seen; zero if it does. It begins anew when enough
	// others come to answer: where all members start, the one that is named has as
	// long as after a crash.
	UnservedSince time.Time

	// LeavingSince is since when the pod of that member is being deleted, as far as
	// anybody has seen; zero if it isn't.
	LeavingSince time.Time

	// Credentials is the Secret that spec.auth names; nil if it isn't seen.
	Credentials *corev1.Secret

	// ReplicaSets are those that our Deployment controls.
	ReplicaSets []*appsv1.ReplicaSet

	// Siblings are the names, by UID, of the other DatabaseManagers that claim
	// the same stem.
	Siblings map[types.UID]string

	// LastSeen are Secrets of ours, and the topology, as they were last seen; also
	// those that have been lost since.
	LastSeen map[Ref]metav1.Object
}

// Member is one pod of a database, and what the engine in it answered.
type Member struct {
	// Pod is the member's pod, as cached.
	Pod *corev1.Pod
	// Probe is what was heard from the engine in it.
	Probe Probe
}

// HasEnded tells whether a pod has ended for good: its containers are gone, and
// so are its own folders.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Probe is what is known of a member by asking it.
type Probe struct {
	// WatchedSince is when asking began; zero while the pod has no address.
	WatchedSince time.Time
	// ExpectedSince is when the pod was first seen with its server started, since
	// its container started last; zero while it hasn't.
	ExpectedSince time.Time
	// IsAsked tells whether a first call has ended, whatever its outcome.
	IsAsked bool
	// Answers tells whether the engine answers queries with our credentials.
	Answers bool
	// Since is when Answers last changed.
	Since time.Time
	// At is when it last answered.
	At time.Time
	// Failure says why the engine doesn't answer.
	Failure string
	// Settings are those of the last answer, by name; none if it tells none.
	Settings Settings
	// Engine is the last answer.
	Engine EngineState
}

// SettleTime is how long, at most, the first answer of a member is waited for
// before the status is written without it.
const SettleTime = 15 * time.Second

// SettlesIn returns how long to wait, at most, until every member that can be
// asked has been asked once, and has answered, if its server has started; zero if
// that is so already. A status written earlier would call a healthy database
// silent each time the operator starts, or a call is late.
func (s Snapshot) SettlesIn(now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, member := range s.Members {
		hasAnswered := member.Probe.Engine != EngineState{}
		if member.Probe.WatchedSince.IsZero() || member.Probe.IsAsked && (hasAnswered || !IsStarted(member.Pod)) {
			continue
		}
		longest = max(longest, member.Probe.WatchedSince.Add(SettleTime).Sub(now))
	}
	return longest
}

// Patience is how long what passes by itself is given, before it is called trouble.
const (
	// answerPatience is for a server that has just started to answer us, too.
	answerPatience = 5 * time.Second
	// podPatience is for the workload's controller to make a pod, and for a
	// StatefulSet to take over the pods of its predecessor.
	podPatience = 15 * time.Second
)

// isExpected tells whether the member's server should answer by now.
func (m Member) isExpected(now time.Time) bool {
	return IsStarted(m.Pod) && now.Sub(m.Probe.ExpectedSince) >= answerPatience
}

// LosesPatienceIn returns after what time what passes by itself becomes trouble;
// zero if there is nothing like that.
func (s Snapshot) LosesPatienceIn(now time.Time) time.Duration {
	soonest := time.Duration(0)
	wait := func(since time.Time, patience time.Duration) {
		soonest = sooner(soonest, max(0, since.Add(patience).Sub(now)))
	}
	for _, member := range s.Members {
		if isWell := member.Probe.Answers && isReady(member.Pod); IsStarted(member.Pod) && !isWell {
			wait(member.Probe.ExpectedSince, answerPatience)
		}
	}
	if !s.AbsentSince.IsZero() {
		wait(s.AbsentSince, podPatience)
	}
	if workload := s.Objects[s.workloadRef()]; workload != nil && len(s.Awaiting) > 0 {
		wait(workload.GetCreationTimestamp().Time, podPatience)
	}
	return soonest
}

// IsHandingOver tells whether the members are between two workloads: nothing is
// known of them for a moment, and nothing is said.
func (s Snapshot) IsHandingOver(now time.Time) bool {
	workload := s.Objects[s.workloadRef()]
	switch {
	case !s.isDurable() || len(s.Awaiting) == 0:
		return false
	case workload == nil || workload.GetDeletionTimestamp() != nil:
		return true
	default:
		return now.Sub(workload.GetCreationTimestamp().Time) < podPatience
	}
}

// isDurable tells whether the database keeps its data on volumes.
func (s Snapshot) isDurable() bool {
	return s.Database.Spec.Storage != nil
}

// workloadRef names the workload that runs the members.
func (s Snapshot) workloadRef() Ref {
	if s.isDurable() || wantedReplicas(s.Database) > 1 {
		return Ref{Kind: KindStatefulSet, Name: s.Database.Spec.DeploymentName}
	}
	return Ref{Kind: KindDeployment, Name: s.Database.Spec.DeploymentName}
}

// isControlled tells whether this database, by UID, controls object.
func (s Snapshot) isControlled(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == s.Database.UID
}
