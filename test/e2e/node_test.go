//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node sees the processes of all nodes, by a pod on each, whose names it has by
// the node's. A container's first process can't be killed from inside of the
// container.
type node struct {
	namespace string
	pods      map[string]string
}

// newNode starts such pods, in a namespace of their own that admits them.
func newNode(t *testing.T) node {
	t.Helper()
	n := node{newNamespaceWith(t, "privileged"), map[string]string{}}
	for _, name := range readyNodes(t) {
		pod := clientPod(anyEngine().image)
		pod.Spec.NodeName, pod.Spec.HostPID = name, true
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pod.Spec.SecurityContext, pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil, nil
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
		created, err := env.kube.CoreV1().Pods(n.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("create a pod that sees the node %s: %v", name, err)
		}
		n.pods[name] = created.Name
	}
	n.awaitPods(t)
	return n
}

// awaitPods waits until they run, also after their node was stopped.
func (n node) awaitPods(t *testing.T) {
	t.Helper()
	for name, pod := range n.pods {
		eventually(t, patience, "start a pod that sees the node "+name, func(ctx context.Context) error {
			_, err := execute(ctx, n.namespace, pod, nil, "true")
			return err
		})
	}
}

// readyNodes are the names of the nodes that are ready.
func readyNodes(t *testing.T) []string {
	t.Helper()
	nodes, err := env.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list the nodes: %v", err)
	}
	var names []string
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				names = append(names, node.Name)
			}
		}
	}
	return names
}

// ofContainer begins each script: it sets pids to the processes of the container
// whose identity is $1, the first of the container first.
const ofContainer = `pids=
for folder in /proc/[0-9]*; do
	grep -qs "$1" "$folder/cgroup" || continue
	case $(sed -n 's/^NSpid:.*[[:space:]]//p' "$folder/status" 2>/dev/null) in
	1) pids="${folder#/proc/} $pids" ;;
	?*) pids="$pids ${folder#/proc/}" ;;
	esac
done
`

// kill kills the first process of a pod's container, as if out of memory; the
// kernel ends the others with it.
func (n node) kill(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	n.inContainer(t, pod, `set -- $pids; kill -KILL "$1"`)
}

// signal sends a signal to all processes of a pod's container: where a server
// has several, the ones that have a client go on when the first is stopped.
func (n node) signal(t *testing.T, pod *corev1.Pod, signal string) {
	t.Helper()
	n.inContainer(t, pod, `kill -`+signal+` $pids`)
}

// visible returns the arguments and the environment of every process of a pod's
// container.
func (n node) visible(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	return n.inContainer(t, pod, `for pid in $pids; do cat "/proc/$pid/cmdline" "/proc/$pid/environ" 2>/dev/null | tr '\000' '\n'; done`)
}

func (n node) inContainer(t *testing.T, pod *corev1.Pod, script string) string {
	t.Helper()
	if len(pod.Status.ContainerStatuses) == 0 {
		t.Fatalf("pod %s has no container", pod.Name)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	output, err := execute(t.Context(), n.namespace, n.pods[pod.Spec.NodeName], nil, "sh", "-c", ofContainer+`[ -n "$pids" ] || exit 1; `+script, "node", id)
	if err != nil {
		t.Fatalf("look for the processes of pod %s: %v", pod.Name, err)
	}
	return output
}
