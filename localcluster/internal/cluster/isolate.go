// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/localcluster/internal/isolation"
	"coolops.cn/database-manager/localcluster/internal/process"
)

// Isolate drops what a pod, as NAMESPACE/NAME, and the addresses send to each other; without addresses all but what the
// pod sends to itself. It lasts until Rejoin, or the end of the pod, and adds to what was cut before.
func (c *Cluster) Isolate(ctx context.Context, pod string, from []string) error {
	return c.inPod(ctx, pod, from, func(namespace isolation.Namespace, peers []netip.Addr) error {
		return namespace.Apply(ctx, isolation.Cut(peers))
	})
}

// Rejoin undoes what Isolate did about the addresses; without addresses all of it.
func (c *Cluster) Rejoin(ctx context.Context, pod string, from []string) error {
	return c.inPod(ctx, pod, from, func(namespace isolation.Namespace, peers []netip.Addr) error {
		if len(peers) > 0 {
			whole, err := namespace.IsWhole(ctx)
			if err != nil {
				return err
			}
			if whole {
				return errors.New("it is isolated from everybody: leave out --from")
			}
		}
		return namespace.Apply(ctx, isolation.Mend(peers))
	})
}

// inPod does something to the network namespace of a pod.
func (c *Cluster) inPod(ctx context.Context, pod string, from []string, do func(isolation.Namespace, []netip.Addr) error) error {
	peers, err := parseAddresses(from)
	if err != nil {
		return err
	}
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok || namespace == "" || name == "" {
		return fmt.Errorf("pod %q: name it as NAMESPACE/POD", pod)
	}
	config, err := c.runningConfig()
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	found, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("find pod %s: %w", pod, err)
	}
	file, err := c.networkOf(config, found)
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod, err)
	}
	defer func() { _ = file.Close() }() // nothing is written
	if err := do(isolation.Namespace{File: file, Root: config.NodeRoot}, peers); err != nil {
		return fmt.Errorf("pod %s: %w", pod, err)
	}
	return nil
}

func parseAddresses(texts []string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil || !address.Is4() {
			return nil, fmt.Errorf("--from has %q: give IPv4 addresses, such as those that `kubectl get pods --output=wide` shows", text)
		}
		addresses = append(addresses, address)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses), nil
}

// networkOf opens the pod's network namespace, found by a process of its own.
func (c *Cluster) networkOf(config Config, pod *corev1.Pod) (*os.File, error) {
	index := slices.Index(config.Nodes, pod.Spec.NodeName)
	switch {
	case index < 0:
		return nil, errors.New("it isn't on a node of this cluster")
	case pod.Spec.HostNetwork:
		return nil, fmt.Errorf("it shares the network of its node: `localcluster node stop %s` is what cuts that off", pod.Spec.NodeName)
	case slices.Contains(config.Stopped, pod.Spec.NodeName):
		return nil, fmt.Errorf("its node %s is stopped", pod.Spec.NodeName)
	}
	spec := c.nodeSpec(config, index)
	nodes, err := process.HoldingLock(spec.AliveFile())
	if err != nil {
		return nil, err
	}
	handles, err := process.InCgroup(spec.Cgroup, "pod"+string(pod.UID))
	if err != nil {
		return nil, err
	}
	for _, handle := range slices.Concat(nodes, handles) {
		defer handle.Close()
	}
	for _, handle := range handles {
		// A process that is just becoming a container's is still in its node's namespace.
		file, err := openNetwork(handle)
		if err == nil && !slices.ContainsFunc(nodes, func(node process.Handle) bool { return sameFile(file, networkPath(node)) }) {
			return file, nil
		}
		if err == nil {
			_ = file.Close() // it was only looked at
		}
	}
	return nil, fmt.Errorf("it has no process on %s: it hasn't started yet, or has ended", pod.Spec.NodeName)
}

func networkPath(handle process.Handle) string { return fmt.Sprintf("/proc/%d/ns/net", handle.PID) }

// openNetwork opens a process's network namespace, unless its number may be another's by now.
func openNetwork(handle process.Handle) (*os.File, error) {
	file, err := os.Open(networkPath(handle))
	if err != nil {
		return nil, err
	}
	if handle.Wait(0) {
		return nil, errors.Join(errors.New("it has ended"), file.Close())
	}
	return file, nil
}
