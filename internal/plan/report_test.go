// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func waitingFor(reason, message string) func(*Member) {
	return func(m *Member) {
		m.Probe = Probe{}
		m.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Image: "redis:typo", RestartCount: 4,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
		}}
	}
}

func unschedulable(message string) func(*Member) {
	return func(m *Member) {
		m.Probe = Probe{}
		m.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}}
	}
}

// reportCase is a database, and what Ready is to say of it.
type reportCase struct {
	database *snapshotBuilder
	outcome  Outcome
	status   metav1.ConditionStatus
	reason   string
	degraded bool
	message  string
}

func TestReadySays(t *testing.T) {
	for sentence, row := range map[string]reportCase{
		"Available when every member answers": {
			aDatabase().withMember(), Outcome{IsDone: true}, metav1.ConditionTrue, v1alpha1.ReasonAvailable, false, "Every member answers",
		},
		"EphemeralStorage when it answers and keeps nothing": {
			aDatabase().ephemeral().withMember(), Outcome{IsDone: true}, metav1.ConditionTrue, v1alpha1.ReasonEphemeralStorage, false, "the data goes when the pod does",
		},
		"Creating while there is no pod": {
			aDatabase(), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonCreating, false, "doesn't exist yet",
		},
		"WaitingForMember while a pod is missing that was there": {
			aDatabase().wasReady(), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonWaitingForMember, false, "doesn't exist yet",
		},
		"Creating while the engine loads": {
			aDatabase().withMember(func(m *Member) { m.Probe.Answers = false; m.Pod.Status.ContainerStatuses[0].Started = new(false) }),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonCreating, false, "is starting",
		},
		"Creating while the member answers and no Service leads to it": {
			aDatabase().withMember(func(m *Member) { m.Pod.Status.Conditions = nil; m.Probe.ExpectedSince = noon() }),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonCreating, false, "behind its Service",
		},
		"EngineNotResponding when it answers us and not its kubelet": {
			aDatabase().withMember(func(m *Member) {
				m.Pod.Status.Conditions[0].Status = corev1.ConditionFalse
				m.Probe.ExpectedSince = noon().Add(-time.Hour)
			}),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonEngineNotResponding, true, "takes no new connections",
		},
		"ConfigRefused with the sentence of the boot script": {
			aDatabase().withMember(refusing(exitBadConfig, "The server doesn't take its configuration: unknown variable 'a'.")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonConfigRefused, true, "unknown variable 'a'. Correct spec.config",
		},
		"EngineNotResponding when it ran and falls silent": {
			aDatabase().withMember(func(m *Member) { m.Probe.Answers = false; m.Probe.Failure = "no answer within 1s" }),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonEngineNotResponding, true, "no answer within 1s",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func TestReadySaysOfVolumesAndStrangers(t *testing.T) {
	for sentence, row := range map[string]reportCase{
		"Conflict when a pod that isn't a member stands behind the Service": {
			func() *snapshotBuilder {
				b := aDatabase().withMember()
				b.Strangers = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "impostor"}}}
				return b
			}(),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonConflict, true, "Pod impostor isn't a member",
		},
		"DataLost with the data set and the way on, when a volume is empty that had data": {
			aDatabase().withMember(refusing(exitNoData, "The volume is empty.")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonDataLost, true, "kubectl annotate databasemanager orders coolops.cn/reinitialize=uid-of-orders",
		},
		"Creating while a member without data has nobody to copy them from": {
			aDatabase().withMember(refusing(exitNoSource, "The primary doesn't answer.")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonCreating, false, "can't copy them yet. The primary doesn't answer.",
		},
		"DataRefused with the sentence of the boot script": {
			aDatabase().withMember(refusing(exitForeignData, "The volume holds data of mysql.")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonDataRefused, true, "The volume holds data of mysql.",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func TestReadySaysWhyAMemberDoesNotStart(t *testing.T) {
	for sentence, row := range map[string]reportCase{
		"ImagePullFailed with the pod and the image": {
			aDatabase().withMember(waitingFor("ImagePullBackOff", "not found")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, true, "Pod db-0 can't get the image redis:typo",
		},
		"CrashLooping with the exit code": {
			aDatabase().withMember(waitingFor("CrashLoopBackOff", "back-off")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonCrashLooping, true, "exit code 1",
		},
		"PodRefused when the container can't be made": {
			aDatabase().withMember(waitingFor("CreateContainerConfigError", "image has non-numeric user")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonPodRefused, true, "non-numeric user",
		},
		"PodUnschedulable with the scheduler's sentence": {
			aDatabase().withMember(unschedulable("0/1 nodes are available: 1 Insufficient cpu.")),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonPodUnschedulable, true, "Insufficient cpu",
		},
		"VolumePending when the sentence is about a volume": {
			aDatabase().withMember(unschedulable(`0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.`)),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonVolumePending, true, "unbound",
		},
		"PodRefused when the Deployment can't make its pod": {
			aDatabase().ephemeral().with(KindDeployment, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "db"},
				Status:     appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}},
			}),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonPodRefused, true, "exceeded quota",
		},
		"Creating while the member takes no writes": {
			aDatabase().withMember(notPromoted), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonCreating, false, "takes no writes yet",
		},
		"what the executor ran into before anything else": {
			aDatabase().withMember(),
			Outcome{Problem: &Problem{Reason: v1alpha1.ReasonConflict, Message: "Service db exists"}},
			metav1.ConditionFalse, v1alpha1.ReasonConflict, true, "Service db exists",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func TestReadySaysOfWhatTheUserAskedFor(t *testing.T) {
	for sentence, row := range map[string]reportCase{
		"Suspended while hands are off": {
			aDatabase().suspended().with(KindStatefulSet, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}).withMember(),
			Outcome{IsDone: true},
			metav1.ConditionTrue, v1alpha1.ReasonSuspended, false, "nothing is changed",
		},
		"Suspended where nothing was made": {
			aDatabase().suspended(), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonSuspended, false, "nothing is made",
		},
		"what a member suffers from, though hands are off": {
			aDatabase().suspended().with(KindStatefulSet, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}).withMember(silent),
			Outcome{IsDone: true},
			metav1.ConditionFalse, v1alpha1.ReasonEngineNotResponding, true, "doesn't answer a query",
		},
		"ShutDown once the members are gone": {
			aDatabase().shutDown(), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonShutDown, false, "their volumes are kept",
		},
		"ShutDown while they are going, whatever they suffer from": {
			aDatabase().shutDown().withMember(silent), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonShutDown, false, "are stopping",
		},
		"ShutDown of one that kept nothing": {
			aDatabase().ephemeral().shutDown(), Outcome{IsDone: true}, metav1.ConditionFalse, v1alpha1.ReasonShutDown, false, "no data",
		},
	} {
		t.Run(sentence, row.check)
	}
}

func (c reportCase) check(t *testing.T) {
	todo := Plan{Topology: settled(c.database).Topology, IsSuspended: c.database.Database.Spec.Suspend}
	status := Report(c.database.build(), Desired{}, todo, c.outcome, noon())
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready.Status != c.status || ready.Reason != c.reason || !strings.Contains(ready.Message, c.message) {
		t.Errorf("Ready is %s/%s: %s; want %s/%s with %q", ready.Status, ready.Reason, ready.Message, c.status, c.reason, c.message)
	}
	if got := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDegraded); got != c.degraded {
		t.Errorf("Degraded is %t, want %t", got, c.degraded)
	}
	for _, condition := range status.Conditions {
		if condition.ObservedGeneration != c.database.Database.Generation {
			t.Errorf("%s is of generation %d", condition.Type, condition.ObservedGeneration)
		}
	}
}

// wasReady gives the database a status of better times.
func (b *snapshotBuilder) wasReady() *snapshotBuilder {
	b.Database.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable,
		LastTransitionTime: metav1.NewTime(noon().Add(-time.Hour)),
	}}
	return b
}

func TestTheStatusCountsWhatAnswers(t *testing.T) {
	status := Report(aDatabase().withMember().build(), Desired{}, Plan{}, Outcome{IsDone: true}, noon())
	if status.Replicas != 1 || status.ReadyReplicas != 1 || status.AvailableReplicas != 1 || status.CurrentPrimary != "db-0" ||
		status.CurrentVersion != "8.0.6" || status.ObservedGeneration != 3 || status.SecretName != "db-auth" {
		t.Errorf("got %+v", status)
	}
	silent := Report(aDatabase().withMember(func(m *Member) { m.Probe.Answers = false }).build(), Desired{}, Plan{}, Outcome{IsDone: true}, noon())
	if silent.Replicas != 1 || silent.AvailableReplicas != 0 || silent.CurrentPrimary != "" || silent.CurrentVersion != "" || silent.Members[0].Ready {
		t.Errorf("got %+v for a member that is silent", silent)
	}
}

func TestAPassThatFailedIsNotCalledActedUpon(t *testing.T) {
	if got := Report(aDatabase().build(), Desired{}, Plan{}, Outcome{}, noon()).ObservedGeneration; got != 0 {
		t.Errorf("observedGeneration is %d, want that of the pass before", got)
	}
}

func TestATransitionIsDatedOnce(t *testing.T) {
	database := aDatabase().wasReady().withMember()
	database.Database.Status = Report(database.build(), Desired{}, Plan{}, Outcome{IsDone: true}, noon())
	later := Report(database.build(), Desired{}, Plan{}, Outcome{IsDone: true}, noon().Add(time.Hour))
	if at := meta.FindStatusCondition(later.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !at.Time.Equal(noon().Add(-time.Hour)) {
		t.Errorf("Ready changed at %s, though it didn't", at)
	}
}
