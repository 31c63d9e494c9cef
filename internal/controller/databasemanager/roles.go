// SPDX-License-Identifier: Apache-2.0

package databasemanager

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// changeRole tells one member what it is to be.
func (e *execution) changeRole(ctx context.Context, action plan.Action) error {
	switch action := action.(type) {
	case plan.Promote:
		return e.onServer(ctx, action.Server, func(connection dbclient.Connection, ctx context.Context) error {
			return connection.Promote(ctx, action.Required)
		})
	case plan.Demote:
		return e.onServer(ctx, action.Server, dbclient.Connection.Demote)
	case plan.Fence:
		return e.onServer(ctx, action.Server, dbclient.Connection.Fence)
	case plan.Follow:
		return e.onServer(ctx, action.Server, func(connection dbclient.Connection, ctx context.Context) error {
			return connection.Follow(ctx, action.Source)
		})
	case plan.Require:
		return e.onServer(ctx, action.Server, func(connection dbclient.Connection, ctx context.Context) error {
			return connection.Require(ctx, action.Required)
		})
	default:
		return fmt.Errorf("%T is no change of a role", action)
	}
}

// label says on a pod what its member is; on the very pod that was observed, as it
// was then.
func (e *execution) label(ctx context.Context, action plan.Label) error {
	var role any // null takes the label away
	if action.Role != "" {
		role = action.Role
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": action.Pod.UID, "resourceVersion": action.Version,
		"labels": map[string]any{v1alpha1.LabelRole: role},
	}})
	if err != nil {
		return err
	}
	pod, err := e.config.Kubernetes.CoreV1().Pods(e.key.Namespace).
		Patch(ctx, action.Pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return &kit.Wait{After: cacheLag, Reason: "the pod has changed since it was read"}
	case err != nil:
		return err
	}
	e.caches.OwnWrites.Wrote(e.key, corev1.Resource("pods"), pod)
	return nil
}
