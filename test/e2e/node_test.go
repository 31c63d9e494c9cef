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

// node is a pod that sees the processes of its node. A container's first process
// can't be killed from inside of the container.
type node struct {
	namespace, name string
}

// newNode starts such a pod, in a namespace of its own that admits it.
func newNode(t *testing.T) node {
	t.Helper()
	namespace := newNamespaceWith(t, "privileged")
	pod := clientPod(anyEngine().image)
	pod.Spec.HostPID = true
	pod.Spec.SecurityContext, pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil, nil
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
	created, err := env.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a pod that sees the node: %v", err)
	}
	n := node{namespace, created.Name}
	eventually(t, patience, "start a pod that sees the node", func(ctx context.Context) error {
		_, err := execute(ctx, n.namespace, n.name, nil, "true")
		return err
	})
	return n
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
	output, err := execute(t.Context(), n.namespace, n.name, nil, "sh", "-c", ofContainer+`[ -n "$pids" ] || exit 1; `+script, "node", id)
	if err != nil {
		t.Fatalf("look for the processes of pod %s: %v", pod.Name, err)
	}
	return output
}
