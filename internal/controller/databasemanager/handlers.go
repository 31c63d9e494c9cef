// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// onDatabase queues a database that changed. When it goes, those that wait for
// its stem are queued too.
func (c *Controller) onDatabase(database *v1alpha1.DatabaseManager, change kit.Change) {
	c.loop.EnqueueObject(database, change.CanWait())
	if !change.IsDeleted {
		return
	}
	c.mu.Lock()
	delete(c.lastSeen, database.UID)
	delete(c.absentSince, database.UID)
	delete(c.unservedSince, database.UID)
	delete(c.forsakenSince, database.UID)
	delete(c.unwrittenSince, database.UID)
	delete(c.leavingSince, database.UID)
	c.mu.Unlock()
	c.enqueueIndexed(byStem, database.Namespace, stemKey(database.Namespace, database.Spec.DeploymentName), false)
}

// onChild queues the databases that a child matters to: the one that owns it by
// UID, and those of its stem. A pod is found by its stem; so is an object that
// stands in a database's way.
func (c *Controller) onChild(child metav1.Object, change kit.Change) {
	if owner := ownerOf(child); owner != "" {
		c.enqueueIndexed(byUID, child.GetNamespace(), string(owner), change.IsInitial)
	}
	if stem := child.GetLabels()[v1alpha1.LabelStem]; stem != "" {
		c.enqueueIndexed(byStem, child.GetNamespace(), stemKey(child.GetNamespace(), stem), change.IsInitial)
	}
}

// onClaim queues the databases that a volume claim matters to, also the one whose
// it is by its name: whatever was taken away of its labels, it is looked at.
func (c *Controller) onClaim(claim *corev1.PersistentVolumeClaim, change kit.Change) {
	c.onChild(claim, change)
	for _, stem := range claimStems(claim)[1:] {
		c.enqueueIndexed(byStem, claim.Namespace, stem, change.IsInitial)
	}
}

// onCredentials queues the databases that take their password from a user's own
// Secret.
func (c *Controller) onCredentials(secret *corev1.Secret, change kit.Change) {
	c.enqueueIndexed(byCredentials, secret.Namespace, secret.Name, change.IsInitial)
}

func (c *Controller) enqueueIndexed(index, namespace, value string, canWait bool) {
	for _, database := range c.caches.databases.ByIndex(namespace, index, value) {
		c.loop.EnqueueObject(database, canWait)
	}
}

// ownerOf returns the UID of what controls child, or, for what outlives its
// database, of the database that used it last.
func ownerOf(child metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(child); controller != nil {
		return controller.UID
	}
	return types.UID(child.GetLabels()[v1alpha1.LabelOwnerUID])
}

// onSecret remembers what a Secret holds, and queues its database. If the
// Secret is lost, the engine still knows the password that was in it, and only
// that one.
func (c *Controller) onSecret(secret *corev1.Secret, change kit.Change) {
	c.remember(plan.Ref{Kind: plan.KindSecret, Name: secret.Name}, secret, change.IsDeleted)
	c.onChild(secret, change)
}

// onConfigMap remembers the topology, which says what no member knows.
func (c *Controller) onConfigMap(config *corev1.ConfigMap, change kit.Change) {
	if config.Name == plan.TopologyName(config.Labels[v1alpha1.LabelStem]) {
		c.remember(plan.Ref{Kind: plan.KindConfigMap, Name: config.Name}, config, change.IsDeleted)
	}
	c.onChild(config, change)
}

// remember keeps an object as it was last seen. It is there before the database is
// queued, and, since it is kept from its appearance on, also where the database is
// being synced for another reason at the moment of the loss.
func (c *Controller) remember(ref plan.Ref, object metav1.Object, isDeleted bool) {
	owner := ownerOf(object)
	databases := c.caches.databases.ByIndex(object.GetNamespace(), byUID, string(owner))
	c.mu.Lock()
	defer c.mu.Unlock()
	if isDeleted && len(databases) == 0 {
		delete(c.lastSeen[owner], ref)
		return
	}
	if c.lastSeen[owner] == nil {
		c.lastSeen[owner] = map[plan.Ref]metav1.Object{}
	}
	c.lastSeen[owner][ref] = object
}
