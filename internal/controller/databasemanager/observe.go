// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// target is how the prober reaches a member.
type target struct {
	dbclient.Target
	engine v1alpha1.DatabaseType
}

// observe gathers what is known of one database. It reads memory only.
func (c *Controller) observe(key cache.ObjectName, database *v1alpha1.DatabaseManager, now time.Time) plan.Snapshot {
	stem := stemKey(database.Namespace, database.Spec.DeploymentName)
	snapshot := plan.Snapshot{Database: database, Objects: map[plan.Ref]metav1.Object{}}
	collect(&snapshot, plan.KindConfigMap, &c.caches.configMaps, stem)
	collect(&snapshot, plan.KindDeployment, &c.caches.deployments, stem)
	collect(&snapshot, plan.KindDisruptionBudget, &c.caches.disruptionBudgets, stem)
	collect(&snapshot, plan.KindNetworkPolicy, &c.caches.networkPolicies, stem)
	collect(&snapshot, plan.KindSecret, &c.caches.secrets, stem)
	collect(&snapshot, plan.KindService, &c.caches.services, stem)
	collect(&snapshot, plan.KindStatefulSet, &c.caches.statefulSets, stem)
	collect(&snapshot, plan.KindVolumeClaim, &c.caches.claims, stem)
	c.observeSiblings(&snapshot, stem)
	c.observeMembers(&snapshot, stem)
	if auth := database.Spec.Auth; auth != nil {
		// A kind that isn't there is nil.
		snapshot.Credentials, _ = c.caches.credentials.Get(cache.NewObjectName(database.Namespace, auth.SecretName))
	}
	c.prober.SetMembers(key, c.probed(snapshot), now)
	for i := range snapshot.Members {
		snapshot.Members[i].Probe = c.answer(key, snapshot.Members[i].Pod.UID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot.LastSeen = maps.Clone(c.lastSeen[database.UID])
	snapshot.AbsentSince = since(c.absentSince, database.UID, isAbsent(snapshot), now)
	snapshot.UnservedSince = c.unserved(database.UID, snapshot.NamedServes(), snapshot.HasSuccessors(), now)
	snapshot.LeavingSince = since(c.leavingSince, database.UID, snapshot.NamedLeaves(), now)
	return snapshot
}

// unserved remembers since when the member that the topology names hasn't served: with
// others that could take its place, or without; zero if it does.
func (c *Controller) unserved(uid types.UID, serves, hasSuccessors bool, now time.Time) time.Time {
	return cmp.Or(
		since(c.unservedSince, uid, !serves && hasSuccessors, now),
		since(c.forsakenSince, uid, !serves && !hasSuccessors, now))
}

// since remembers since when something has been so; zero if it isn't.
func since(known map[types.UID]time.Time, uid types.UID, isSo bool, now time.Time) time.Time {
	switch {
	case !isSo:
		delete(known, uid)
	case known[uid].IsZero():
		known[uid] = now
	}
	return known[uid]
}

// isAbsent tells whether the StatefulSet's controller has seen what is wanted,
// and has made no pod. It says nowhere but in its events why. That of a
// Deployment says so in its status.
func isAbsent(snapshot plan.Snapshot) bool {
	ref := plan.Ref{Kind: plan.KindStatefulSet, Name: snapshot.Database.Spec.DeploymentName}
	statefulSet, exists := snapshot.Objects[ref].(*appsv1.StatefulSet)
	return exists && metav1.IsControlledBy(statefulSet, snapshot.Database) && len(snapshot.Members) == 0 && len(snapshot.Awaiting) == 0 &&
		statefulSet.Status.ObservedGeneration == statefulSet.Generation && statefulSet.Status.Replicas == 0 &&
		(statefulSet.Spec.Replicas == nil || *statefulSet.Spec.Replicas > 0)
}

// collect adds the cached objects of one kind and stem.
func collect[T kit.Object](snapshot *plan.Snapshot, kind plan.Kind, cached *kit.Cache[T], stem string) {
	for _, object := range cached.ByIndex(snapshot.Database.Namespace, byStem, stem) {
		snapshot.Objects[plan.Ref{Kind: kind, Name: object.GetName()}] = object
	}
}

// observeSiblings finds the other databases that claim the stem.
func (c *Controller) observeSiblings(snapshot *plan.Snapshot, stem string) {
	snapshot.Siblings = map[types.UID]string{}
	for _, sibling := range c.caches.databases.ByIndex(snapshot.Database.Namespace, byStem, stem) {
		if sibling.UID != snapshot.Database.UID {
			snapshot.Siblings[sibling.UID] = sibling.Name
		}
	}
}

// observeMembers finds the pods whose chain of owners reaches our workload:
// StatefulSet or ReplicaSet and Deployment, each step by UID.
func (c *Controller) observeMembers(snapshot *plan.Snapshot, stem string) {
	replicaSets := c.caches.replicaSets.ByIndex(snapshot.Database.Namespace, byStem, stem)
	pods := c.caches.pods.ByIndex(snapshot.Database.Namespace, byStem, stem)
	owners := map[types.UID]bool{}
	deployments := map[types.UID]bool{}
	for _, object := range snapshot.Objects {
		if !metav1.IsControlledBy(object, snapshot.Database) {
			continue
		}
		switch object.(type) {
		case *appsv1.StatefulSet:
			owners[object.GetUID()] = true
		case *appsv1.Deployment:
			deployments[object.GetUID()] = true
		}
	}
	for _, replicaSet := range replicaSets {
		if controller := metav1.GetControllerOfNoCopy(replicaSet); controller != nil && deployments[controller.UID] {
			owners[replicaSet.UID] = true
			snapshot.ReplicaSets = append(snapshot.ReplicaSets, replicaSet)
		}
	}
	for _, pod := range pods {
		controller := metav1.GetControllerOfNoCopy(pod)
		switch {
		case plan.HasEnded(pod):
			if controller != nil && owners[controller.UID] {
				snapshot.Ended = append(snapshot.Ended, pod)
			}
		case controller != nil && owners[controller.UID]:
			snapshot.Members = append(snapshot.Members, plan.Member{Pod: pod})
		case isAwaiting(pod, controller, snapshot.Database):
			snapshot.Awaiting = append(snapshot.Awaiting, pod)
		case isStranger(pod, controller, snapshot.Database.Spec.DeploymentName):
			snapshot.Strangers = append(snapshot.Strangers, pod)
		}
	}
	for _, pods := range [][]*corev1.Pod{snapshot.Ended, snapshot.Strangers, snapshot.Awaiting} {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(snapshot.Members, func(a, b plan.Member) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
}

// isStranger tells whether a pod that isn't a member can't become one either.
// One of a workload of our names may be a member whose owners the caches don't
// show yet, or one of an earlier database that is going.
func isStranger(pod *corev1.Pod, controller *metav1.OwnerReference, stem string) bool {
	if pod.DeletionTimestamp != nil || pod.Labels[v1alpha1.LabelComponent] != v1alpha1.ComponentDatabase {
		return false
	}
	isOfOurNames := controller != nil &&
		(controller.Kind == "StatefulSet" && controller.Name == stem || controller.Kind == "ReplicaSet" && strings.HasPrefix(controller.Name, stem+"-"))
	return !isOfOurNames
}

// isAwaiting tells whether a pod is one that a StatefulSet of ours takes over: it
// has the name of a member, and nobody controls it, or a StatefulSet of our name
// that is gone.
func isAwaiting(pod *corev1.Pod, controller *metav1.OwnerReference, database *v1alpha1.DatabaseManager) bool {
	stem := database.Spec.DeploymentName
	hasName := plan.ClaimStem(plan.ClaimName(pod.Name)) == stem
	isOrphan := controller == nil || controller.Kind == "StatefulSet" && controller.Name == stem
	return hasName && isOrphan && pod.DeletionTimestamp == nil &&
		pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name
}

// probed returns the members that can be asked.
func (c *Controller) probed(snapshot plan.Snapshot) []kit.ProbedMember[target] {
	var probed []kit.ProbedMember[target]
	for _, member := range snapshot.Members {
		if address, isReachable := c.target(snapshot, plan.PodRef{Name: member.Pod.Name, UID: member.Pod.UID}); isReachable {
			probed = append(probed, kit.ProbedMember[target]{
				UID: member.Pod.UID, Interval: askInterval, Target: address, IsExpected: plan.IsStarted(member.Pod),
			})
		}
	}
	return probed
}

// target returns how to reach a member: one that runs and has an address, of a
// database whose operator's password is known.
func (c *Controller) target(snapshot plan.Snapshot, pod plan.PodRef) (target, bool) {
	database := snapshot.Database
	engine, isKnown := c.engines[database.Spec.DBType]
	secret, exists := snapshot.Objects[plan.Ref{Kind: plan.KindSecret, Name: plan.AdminSecretName(database.Spec.DeploymentName)}].(*corev1.Secret)
	if !isKnown || !exists {
		return target{}, false
	}
	for _, member := range snapshot.Members {
		status := member.Pod.Status
		if member.Pod.UID != pod.UID || status.Phase != corev1.PodRunning || status.PodIP == "" {
			continue
		}
		return target{engine: database.Spec.DBType, Target: dbclient.Target{
			Address:     net.JoinHostPort(status.PodIP, strconv.Itoa(int(engine.Port()))),
			Username:    engine.AdminUsername(),
			Password:    string(secret.Data[plan.PasswordKey]),
			AppUsername: engine.Username(),
			AppPassword: appPassword(snapshot),
			Parameters:  engine.liveNames,
		}}, true
	}
	return target{}, false
}

// appPassword is the password that the application's account should have; empty
// if it isn't known.
func appPassword(snapshot plan.Snapshot) string {
	name := plan.AuthSecretName(snapshot.Database.Spec.DeploymentName)
	secret, exists := snapshot.Objects[plan.Ref{Kind: plan.KindSecret, Name: name}].(*corev1.Secret)
	if !exists {
		return ""
	}
	return string(secret.Data[plan.PasswordKey])
}

// answer returns what the prober knows of a member.
func (c *Controller) answer(key cache.ObjectName, pod types.UID) plan.Probe {
	answer, isAsked := c.prober.Answer(key, pod)
	if !isAsked {
		return plan.Probe{}
	}
	probe := plan.Probe{
		WatchedSince:  answer.WatchedSince,
		ExpectedSince: answer.ExpectedSince,
		IsAsked:       answer.IsAsked,
		Answers:       answer.Answers && !answer.State.IsLoading,
		Since:         answer.Since,
		At:            answer.LastAnswer,
		Settings:      plan.ParseSettings(answer.State.Settings),
		Engine:        answer.State,
	}
	if answer.Failure != nil {
		probe.Failure = answer.Failure.Error()
	}
	return probe
}
