// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// engineRetry is how long to wait where an engine refuses what it is given.
	engineRetry = time.Minute
	// expansionRetry is how long to wait where a volume isn't allowed to grow: no
	// watch tells when its class is changed.
	expansionRetry = 5 * time.Minute
)

// onServer does something to a member, provided that the server that answers is
// the very one that was observed: an address can have passed to another pod.
func (e *execution) onServer(ctx context.Context, server plan.Server, do func(dbclient.Connection, context.Context) error) error {
	target, isReachable := e.target(e.snapshot, server.Pod)
	if !isReachable {
		return fmt.Errorf("pod %s has no address any more: %w", server.Pod.Name, kit.ErrChanged)
	}
	if !e.config.MayAct(actionLimit) {
		return &kit.Stalled{Reason: "the leader's lease is about to end"}
	}
	ctx, cancel := context.WithTimeout(ctx, actionLimit)
	defer cancel()
	connection := e.engines[target.engine].Dial(target.Target)
	// A connection that can't be closed is gone all the same.
	defer func() { _ = connection.Close() }()
	state, err := connection.State(ctx)
	if err != nil {
		return fmt.Errorf("ask pod %s: %w", server.Pod.Name, err)
	}
	if state.RunID != server.RunID {
		return fmt.Errorf("pod %s was started anew: %w", server.Pod.Name, kit.ErrChanged)
	}
	// Done or not, what is known of the member is older than that.
	defer func() { e.prober.Outdate(e.key, server.Pod.UID, time.Now()) }()
	return do(connection, ctx)
}

// setPassword gives the application's account the password of its Secret.
func (e *execution) setPassword(ctx context.Context, action plan.SetPassword) error {
	err := e.onServer(ctx, action.Server, dbclient.Connection.SetPassword)
	secret := plan.AuthSecretName(e.snapshot.Database.Spec.DeploymentName)
	return beside(err, v1alpha1.ReasonPasswordRefused,
		fmt.Sprintf("Pod %s doesn't take the password that is in Secret %s, and keeps the former one", action.Pod.Name, secret),
		"Write another one into the Secret.")
}

// configure sets parameters in a running server.
func (e *execution) configure(ctx context.Context, action plan.Configure) error {
	err := e.onServer(ctx, action.Server, func(connection dbclient.Connection, ctx context.Context) error {
		return connection.Configure(ctx, action.Settings)
	})
	return beside(err, v1alpha1.ReasonConfigRefused,
		fmt.Sprintf("Pod %s doesn't take a value of spec.config, and runs with the former one", action.Pod.Name),
		"Correct it, or take it out.")
}

// beside makes a server's refusal a problem that keeps nothing else from being
// carried out: what happened, the server's own reason, and the remedy. Another
// error stays what it is.
func beside(err error, reason, happened, remedy string) error {
	refusal, isRefused := errors.AsType[*dbclient.Refusal](err)
	if !isRefused {
		return err
	}
	return &plan.Problem{
		Reason: reason, Retry: engineRetry, IsAside: true,
		Message: fmt.Sprintf("%s: %s. %s", happened, refusal.Reason, remedy),
	}
}

// grow asks for a larger volume. It is no apply, so that what else we own of the
// claim doesn't depend on whether its class allows it to grow.
func (e *execution) grow(ctx context.Context, action plan.Grow) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": action.UID},
		"spec":     map[string]any{"resources": map[string]any{"requests": corev1.ResourceList{corev1.ResourceStorage: action.Size}}},
	})
	if err != nil {
		return err
	}
	claim, err := e.config.Kubernetes.CoreV1().PersistentVolumeClaims(e.key.Namespace).
		Patch(ctx, action.Claim, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: sizeFieldManager})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return &plan.Problem{
			Reason: v1alpha1.ReasonExpansionRefused, Retry: expansionRetry, IsAside: true,
			Message: fmt.Sprintf("The volume can't grow to %s: %v. It stays as large as it is, and the database runs on.", action.Size.String(), err),
		}
	case err != nil:
		return err
	}
	e.caches.OwnWrites.Wrote(e.key, corev1.Resource("persistentvolumeclaims"), claim)
	return nil
}

// orphan deletes a workload, and leaves its pods to the next one of its name.
func (e *execution) orphan(ctx context.Context, action plan.Orphan) error {
	policy := metav1.DeletePropagationOrphan
	err := e.config.Kubernetes.AppsV1().StatefulSets(e.key.Namespace).Delete(ctx, action.Ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &action.UID}, PropagationPolicy: &policy,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	e.caches.OwnWrites.Deleted(e.key, appsv1.Resource("statefulsets"), cache.NewObjectName(e.key.Namespace, action.Ref.Name), action.UID)
	return nil
}

// findSecret looks for a user's Secret that no watch shows, and tells what it
// lacks.
func (e *execution) findSecret(ctx context.Context, action plan.FindSecret) error {
	name := action.Name
	secret, err := e.config.Kubernetes.CoreV1().Secrets(e.key.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // as the plan says already
	case err != nil:
		return err
	case secret.Labels[v1alpha1.LabelCredentials] == v1alpha1.CredentialsValue:
		return &kit.Wait{After: cacheLag, Reason: "the cache of Secrets is behind"}
	}
	return &plan.Problem{
		Reason: v1alpha1.ReasonSecretNotLabelled, Retry: evictionRetry, IsAside: action.IsAside,
		Message: fmt.Sprintf("Secret %s lacks the label without which it isn't seen; nothing was changed. Run: kubectl label secret %s %s=%s",
			name, name, v1alpha1.LabelCredentials, v1alpha1.CredentialsValue),
	}
}
