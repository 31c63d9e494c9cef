// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// Outcome is what became of a plan.
type Outcome struct {
	// Problem is what the executor ran into, where help is needed; nil otherwise.
	// One that is aside hasn't kept it from carrying out the rest.
	Problem *Problem
	// IsDone is true if every action of the plan was carried out.
	IsDone bool
}

// Report says how the database is, in the form of its status. Nothing is ever
// decided from it; the earlier status is only looked at for when a condition
// changed, and whether a database that isn't ready is still being created.
func Report(snapshot Snapshot, desired Desired, plan Plan, outcome Outcome, now time.Time) v1alpha1.DatabaseManagerStatus {
	problem := plan.Problem
	if outcome.Problem != nil {
		problem = outcome.Problem
	}
	if problem != nil && problem.IsAside {
		plan.Aside, problem = problem, nil
	}
	database := snapshot.Database
	stem := database.Spec.DeploymentName
	status := v1alpha1.DatabaseManagerStatus{
		ObservedGeneration: database.Status.ObservedGeneration,
		Selector:           Selector(stem),
		Conditions:         append([]metav1.Condition(nil), database.Status.Conditions...),
	}
	if outcome.IsDone || problem != nil {
		status.ObservedGeneration = database.Generation
	}
	if problem == nil || snapshot.Objects[Ref{Kind: KindSecret, Name: AuthSecretName(stem)}] != nil {
		status.SecretName = AuthSecretName(stem)
	}
	for _, member := range snapshot.Members {
		addMember(&status, member, desired.Topology)
	}
	status.Config = snapshot.parameters(desired)
	setConditions(&status, diagnose(snapshot, plan, problem, now), plan, database.Generation, now)
	return status
}

// parameters says what became of those that the spec sets.
func (s Snapshot) parameters(desired Desired) []v1alpha1.ParameterStatus {
	hasFiles := make([]bool, len(s.Members))
	for i, member := range s.Members {
		mounted := map[string]bool{}
		addConfigs(mounted, member.Pod.Spec)
		hasFiles[i] = mounted[desired.ConfigName]
	}
	var states []v1alpha1.ParameterStatus
	for _, parameter := range desired.Parameters {
		state := v1alpha1.ParameterStatus{Name: parameter.Name, Change: v1alpha1.ParameterChangeRestart, InEffect: len(s.Members) > 0}
		if parameter.IsLive {
			state.Change = v1alpha1.ParameterChangeLive
		}
		for i, member := range s.Members {
			hasIt := hasFiles[i]
			if parameter.IsLive {
				hasIt = member.Probe.Settings[parameter.Name] == desired.Live[parameter.Name]
			}
			state.InEffect = state.InEffect && member.Probe.Answers && hasIt
		}
		states = append(states, state)
	}
	return states
}

// Selector returns the label query that selects the members' pods.
func Selector(stem string) string {
	return fmt.Sprintf("%s=%s,%s=%s", v1alpha1.LabelComponent, v1alpha1.ComponentDatabase, v1alpha1.LabelStem, stem)
}

func addMember(status *v1alpha1.DatabaseManagerStatus, member Member, topology TopologyStep) {
	entry := v1alpha1.MemberStatus{Name: member.Pod.Name, Ready: member.Probe.Answers}
	status.Replicas++
	if isReady(member.Pod) {
		status.ReadyReplicas++
	}
	if member.Probe.Answers {
		entry.Role = member.Probe.Engine.Role
		if lag := member.Probe.Engine.Progress.Lag; entry.Role == v1alpha1.MemberRoleReplica && lag >= 0 && member.Probe.Engine.Replication.Source != "" {
			entry.Lag = coarse(lag).String()
		}
		// One without the primary's data isn't available, whatever it answers.
		role, isDecided := topology.move.roles[member.Pod.Name]
		if !isDecided || role != "" || len(topology.Members) == 0 && entry.Role == v1alpha1.MemberRolePrimary {
			status.AvailableReplicas++
		}
		if entry.Role == v1alpha1.MemberRolePrimary && (topology.Primary == "" || topology.Primary == member.Pod.Name) {
			status.CurrentPrimary = member.Pod.Name
			status.CurrentVersion = member.Probe.Engine.Version
		}
	}
	status.Members = append(status.Members, entry)
}

// coarse is the greatest of a few lengths of time that a lag has reached: a status
// isn't written for each second.
func coarse(lag time.Duration) time.Duration {
	reached := time.Duration(0)
	for _, length := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour} {
		if lag >= length {
			reached = length
		}
	}
	return reached
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setConditions derives every condition from the one diagnosis.
func setConditions(status *v1alpha1.DatabaseManagerStatus, found diagnosis, plan Plan, generation int64, now time.Time) {
	set := func(kind string, isTrue bool, reason, message string) {
		value := metav1.ConditionFalse
		if isTrue {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	isReady := found.gravity == isWell || found.gravity == isChanging
	set(v1alpha1.ConditionReady, isReady, found.reason, found.message)

	switch {
	case found.gravity == isUnderway, found.gravity == isChanging:
		set(v1alpha1.ConditionProgressing, true, found.reason, found.message)
	case plan.IsRolling:
		set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonRolling, "A member is being replaced.")
	case found.gravity == isTroubled, found.gravity == isStopped, plan.IsSuspended:
		set(v1alpha1.ConditionProgressing, false, found.reason, found.message)
	default:
		set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonUpToDate, "The spec is carried out.")
	}

	switch {
	case found.gravity == isTroubled && plan.Aside != nil:
		set(v1alpha1.ConditionDegraded, true, found.reason, found.message+" Besides: "+plan.Aside.Message)
	case found.gravity == isTroubled:
		set(v1alpha1.ConditionDegraded, true, found.reason, found.message)
	case plan.Aside != nil:
		set(v1alpha1.ConditionDegraded, true, plan.Aside.Reason, plan.Aside.Message)
	default:
		set(v1alpha1.ConditionDegraded, false, v1alpha1.ReasonAsExpected, "Nothing is wrong.")
	}
	set(v1alpha1.ConditionTransportEncrypted, false, v1alpha1.ReasonNotEncrypted,
		"Connections are in clear text: this version of the operator sets up no TLS.")
}

// wantedReplicas returns spec.replicas, with its default.
func wantedReplicas(database *v1alpha1.DatabaseManager) int32 {
	if database.Spec.Replicas == nil {
		return 1
	}
	return *database.Spec.Replicas
}
