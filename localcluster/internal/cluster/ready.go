// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// waitForNodes waits until the nodes are ready, and have said so after since: of a node that is gone Kubernetes tells for
// a while what it heard last.
func (c *Cluster) waitForNodes(ctx context.Context, names []string, since time.Time) error {
	return c.waitForEach(ctx, "nodes not ready", names, func(ctx context.Context, client kubernetes.Interface) ([]string, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var ready []string
		for _, node := range nodes.Items {
			isRenewed := func(lease coordinationv1.Lease) bool {
				return lease.Name == node.Name && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(since)
			}
			if isReady(node) && slices.ContainsFunc(leases.Items, isRenewed) {
				ready = append(ready, node.Name)
			}
		}
		return ready, nil
	})
}

// waitForDNS waits until the cluster's DNS answers on each of the nodes, by a server that was started after since.
func (c *Cluster) waitForDNS(ctx context.Context, names []string, since time.Time) error {
	since = since.Truncate(time.Second) // as precise as the API's times are
	return c.waitForEach(ctx, "no DNS on nodes", names, func(ctx context.Context, client kubernetes.Interface) ([]string, error) {
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		if err != nil {
			return nil, err
		}
		var ready []string
		for _, pod := range pods.Items {
			isNew := func(status corev1.ContainerStatus) bool {
				return status.Ready && status.State.Running != nil && !status.State.Running.StartedAt.Time.Before(since)
			}
			if slices.ContainsFunc(pod.Status.ContainerStatuses, isNew) {
				ready = append(ready, pod.Spec.NodeName)
			}
		}
		return ready, nil
	})
}

// waitForEach waits until look, which is tried again when it fails, has found every name.
func (c *Cluster) waitForEach(ctx context.Context, problem string, names []string, look func(context.Context, kubernetes.Interface) ([]string, error)) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	missing := names
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if running, err := c.Running(); err != nil || !running {
			return false, errors.Join(err, errors.New("the cluster's process ended"))
		}
		var found []string
		if found, lastErr = look(ctx, client); lastErr == nil {
			missing = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(found, name) })
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%s within %s: %q: %w", problem, readyTimeout, missing, errors.Join(err, lastErr))
	}
	return nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
