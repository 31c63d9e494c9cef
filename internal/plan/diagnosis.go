// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// gravity says how much help a database needs.
type gravity int

const (
	isWell gravity = iota
	// isStopped is as the user wants it, and serves nobody.
	isStopped
	// isChanging serves, while something is underway.
	isChanging
	isUnderway
	isTroubled
)

// diagnosis is the one word, and the sentence, for how a database is.
type diagnosis struct {
	gravity gravity
	reason  string
	message string
}

// diagnose is the one place that says how a database is. The first that
// applies counts: what keeps us from acting, what we can't do, what a member
// suffers from, what is still underway, and then that all is well.
func diagnose(snapshot Snapshot, plan Plan, problem *Problem, now time.Time) diagnosis {
	switch {
	case problem != nil:
		return diagnosis{isTroubled, problem.Reason, problem.Message}
	case plan.Finding != nil && plan.Finding.IsTrouble:
		return diagnosis{isTroubled, plan.Finding.Reason, plan.Finding.Message}
	}
	if len(snapshot.Strangers) > 0 {
		stranger := snapshot.Strangers[0]
		return diagnosis{isTroubled, v1alpha1.ReasonConflict, fmt.Sprintf(
			"Pod %s isn't a member, and has the labels that the Services select by (%s): clients may reach it in a member's stead. Delete it, or those labels of it.",
			stranger.Name, Selector(snapshot.Database.Spec.DeploymentName))}
	}
	if found := snapshot.diagnoseRest(plan); found.gravity != isWell {
		return found
	}
	for _, member := range snapshot.Members {
		if found := snapshot.diagnoseMember(member, plan.Topology, now); found.gravity != isWell {
			return found
		}
	}
	if found := snapshot.diagnoseAbsence(now); found.gravity != isWell {
		return found
	}
	if plan.Finding != nil {
		return snapshot.diagnoseFinding(*plan.Finding)
	}
	switch {
	case plan.IsRolling:
		return diagnosis{isChanging, v1alpha1.ReasonRolling, "A member is about to be replaced."}
	case plan.Growing != "":
		return diagnosis{isChanging, v1alpha1.ReasonVolumeGrowing, fmt.Sprintf(
			"The volume of the claim %s is being made larger; the database serves meanwhile.", plan.Growing)}
	case plan.IsSuspended:
		return diagnosis{isWell, v1alpha1.ReasonSuspended, "Every member answers queries. spec.suspend is set: nothing is changed or repaired."}
	}
	if !snapshot.isDurable() {
		return diagnosis{
			isWell, v1alpha1.ReasonEphemeralStorage,
			"Every member answers queries. There is no spec.storage: the data goes when the pod does.",
		}
	}
	return diagnosis{isWell, v1alpha1.ReasonAvailable, "Every member answers queries."}
}

// diagnoseRest explains a database that runs nothing because the user wants it so.
func (s Snapshot) diagnoseRest(plan Plan) diagnosis {
	switch {
	case plan.IsSuspended && s.Objects[s.workloadRef()] == nil:
		return diagnosis{isStopped, v1alpha1.ReasonSuspended, "spec.suspend is set: nothing is made."}
	case !s.Database.Spec.Shutdown || plan.IsSuspended:
		return diagnosis{}
	case len(s.Members) > 0:
		return diagnosis{isUnderway, v1alpha1.ReasonShutDown, "spec.shutdown is set, and the members are stopping."}
	case s.isDurable():
		return diagnosis{isStopped, v1alpha1.ReasonShutDown, "spec.shutdown is set: there are no members, and their volumes are kept."}
	default:
		return diagnosis{isStopped, v1alpha1.ReasonShutDown, "spec.shutdown is set: there are no members, and, without spec.storage, no data."}
	}
}

// diagnoseFinding words what is still to come of the replication. One that has as
// many members as were asked for, all of them current, is ready meanwhile.
func (s Snapshot) diagnoseFinding(finding Finding) diagnosis {
	switch {
	case !s.NamedServes():
		return s.underway(finding.Message)
	case finding.Reason == v1alpha1.ReasonSwitchoverWaiting:
		return diagnosis{isChanging, finding.Reason, finding.Message}
	default:
		return diagnosis{isUnderway, finding.Reason, finding.Message}
	}
}

// diagnoseAbsence explains a member that has no pod.
func (s Snapshot) diagnoseAbsence(now time.Time) diagnosis {
	if len(s.Members) > 0 {
		return diagnosis{}
	}
	if deployment, isDeployment := s.Objects[s.workloadRef()].(*appsv1.Deployment); isDeployment {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return diagnosis{isTroubled, v1alpha1.ReasonPodRefused, "The member's pod can't be created: " + condition.Message}
			}
		}
	}
	if !s.AbsentSince.IsZero() && now.Sub(s.AbsentSince) >= podPatience {
		return diagnosis{isTroubled, v1alpha1.ReasonPodRefused, fmt.Sprintf(
			"The member's pod isn't made; its workload's events say why, for example a quota or an admission policy. See: kubectl describe %s %s",
			strings.ToLower(string(s.workloadRef().Kind)), s.workloadRef().Name)}
	}
	return s.underway("The member's pod doesn't exist yet.")
}

// diagnoseMember explains a member that doesn't answer queries.
func (s Snapshot) diagnoseMember(member Member, topology Topology, now time.Time) diagnosis {
	pod := member.Pod
	if pod.DeletionTimestamp != nil {
		return s.underway(fmt.Sprintf("Pod %s is stopping.", pod.Name))
	}
	if found := diagnoseScheduling(pod); found.gravity != isWell {
		return found
	}
	if refusal, isRefused := member.refusal(); isRefused {
		return s.diagnoseRefusal(pod, refusal, topology)
	}
	for _, container := range pod.Status.ContainerStatuses {
		if found := diagnoseContainer(pod, container); found.gravity != isWell {
			return found
		}
	}
	switch {
	case member.Probe.Answers && !member.isPrimary() && (member.Pod.Name == topology.Primary || len(s.Members) == 1):
		return s.underway(fmt.Sprintf("Pod %s answers queries, and takes no writes yet.", pod.Name))
	case member.Probe.Answers && isReady(pod):
		return diagnosis{}
	case member.Probe.Answers && member.isExpected(now):
		return diagnosis{
			isTroubled, v1alpha1.ReasonEngineNotResponding,
			fmt.Sprintf("Pod %s answers the operator, and not its kubelet: it takes no new connections, or its node is out of reach. No Service leads to it.", pod.Name),
		}
	case member.Probe.Answers:
		return s.underway(fmt.Sprintf("Pod %s answers queries, and isn't behind its Service yet.", pod.Name))
	case member.Probe.IsAsked && member.isExpected(now):
		return diagnosis{
			isTroubled, v1alpha1.ReasonEngineNotResponding,
			fmt.Sprintf("Pod %s runs, and the engine in it doesn't answer a query: %s.", pod.Name, member.Probe.Failure),
		}
	default:
		return s.underway(fmt.Sprintf("Pod %s is starting.", pod.Name))
	}
}

// diagnoseRefusal explains a member whose boot script refused to start the
// server, because of what is on its volume.
func (s Snapshot) diagnoseRefusal(pod *corev1.Pod, refusal corev1.ContainerStateTerminated, topology Topology) diagnosis {
	sentence := strings.TrimSpace(refusal.Message)
	switch {
	case refusal.ExitCode == exitBadConfig:
		return diagnosis{isTroubled, v1alpha1.ReasonConfigRefused, fmt.Sprintf(
			"Pod %s doesn't start its server. %s Correct spec.config, or take the parameter out.", pod.Name, sentence)}
	case refusal.ExitCode == exitNoSource:
		return s.underway(fmt.Sprintf("Pod %s has no data, and can't copy them yet. %s", pod.Name, sentence))
	case refusal.ExitCode != exitNoData:
		return diagnosis{isTroubled, v1alpha1.ReasonDataRefused, fmt.Sprintf("Pod %s doesn't start its server. %s", pod.Name, sentence)}
	case topology.State == TopologyNew || !s.isDurable():
		return s.underway(fmt.Sprintf("Pod %s waits for its turn to make a database.", pod.Name))
	}
	return diagnosis{isTroubled, v1alpha1.ReasonDataLost, fmt.Sprintf(
		"The volume of Pod %s, claim %s, is empty, and the data set %s was on it; nothing was made in its place. Bring the data back to the "+
			"volume and delete the pod, or, to begin again with nothing, run: kubectl annotate databasemanager %s %s=%s --overwrite",
		pod.Name, ClaimName(pod.Name), topology.DataID, s.Database.Name, v1alpha1.AnnotationReinitialize, topology.DataID)}
}

// underway words what passes without help: it is Creating until the database
// has been seen well, or troubled, once.
func (s Snapshot) underway(message string) diagnosis {
	for _, condition := range s.Database.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady && condition.Reason != v1alpha1.ReasonCreating {
			return diagnosis{isUnderway, v1alpha1.ReasonWaitingForMember, message}
		}
	}
	return diagnosis{isUnderway, v1alpha1.ReasonCreating, message}
}

func diagnoseScheduling(pod *corev1.Pod) diagnosis {
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled || condition.Status != corev1.ConditionFalse || condition.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		message := fmt.Sprintf("No node takes Pod %s: %s", pod.Name, condition.Message)
		if isAboutVolumes(condition.Message) {
			return diagnosis{isTroubled, v1alpha1.ReasonVolumePending, message}
		}
		return diagnosis{isTroubled, v1alpha1.ReasonPodUnschedulable, message}
	}
	return diagnosis{}
}

// isAboutVolumes tells whether the scheduler's sentence is about volumes. It
// gives no reason of its own for that; a sentence that isn't recognised is
// reported as the wider PodUnschedulable, with the same text.
func isAboutVolumes(message string) bool {
	for _, word := range []string{"PersistentVolumeClaim", "persistentvolumeclaim", "storageclass", "persistent volumes"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

func diagnoseContainer(pod *corev1.Pod, container corev1.ContainerStatus) diagnosis {
	waiting := container.State.Waiting
	if waiting == nil {
		return diagnosis{}
	}
	switch waiting.Reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
		return diagnosis{
			isTroubled, v1alpha1.ReasonImagePullFailed,
			fmt.Sprintf("Pod %s can't get the image %s: %s: %s", pod.Name, container.Image, waiting.Reason, waiting.Message),
		}
	case "CrashLoopBackOff":
		return diagnosis{
			isTroubled, v1alpha1.ReasonCrashLooping,
			fmt.Sprintf("The database in Pod %s ends again and again (%d restarts)%s. See: kubectl logs %s --previous",
				pod.Name, container.RestartCount, lastExit(container), pod.Name),
		}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return diagnosis{
			isTroubled, v1alpha1.ReasonPodRefused,
			fmt.Sprintf("Pod %s can't be started: %s: %s", pod.Name, waiting.Reason, waiting.Message),
		}
	default:
		return diagnosis{}
	}
}

func lastExit(container corev1.ContainerStatus) string {
	last := container.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	return fmt.Sprintf(", last with exit code %d, %s", last.ExitCode, last.Reason)
}

// IsStarted tells whether the startup probe of every container has succeeded.
func IsStarted(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.Started == nil || !*container.Started {
			return false
		}
	}
	return true
}
