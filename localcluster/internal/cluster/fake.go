// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"coolops.cn/database-manager/localcluster/internal/addons"
)

// maxFake is how many fake nodes a cluster has at most. A single one has room for all pods that a cluster can have.
const maxFake = 1000

// kwokIdentity is that of the program that plays fake nodes.
const kwokIdentity = "kwok"

// isAlone tells whether the fake nodes of a cluster are its only ones.
func (c Config) isAlone() bool { return c.Fake > 0 && len(c.Nodes) == 0 }

// fakeNodeNames are fake-1, fake-2 and so on.
func fakeNodeNames(count int) []string {
	names := make([]string, count)
	for index := range names {
		names[index] = fmt.Sprintf("fake-%d", index+1)
	}
	return names
}

// fakeNodeIP is the address of the fake node with that index, counted from 0. It lies in a range that no router passes on,
// as those of fake pods do, which kwok gives.
func fakeNodeIP(index int) net.IP {
	const perByte = 256
	return net.IPv4(248, 0, byte((index+1)/perByte), byte((index+1)%perByte))
}

// fakeNode is a node with room for more pods than a cluster can have. Beside real ones it takes the pods that ask for it,
// by a toleration: any other would seem to run where nothing does.
func fakeNode(index int, alone bool) *corev1.Node {
	name := fakeNodeNames(index + 1)[index]
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{addons.FakeNodeKey: addons.FakeNodeValue},
			Labels: map[string]string{
				addons.FakeNodeKey: addons.FakeNodeValue, "type": "kwok",
				corev1.LabelHostname: name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
				// That a fake node is ready says nothing of whether real ones are lost.
				"node.kubernetes.io/exclude-disruption": "true",
			},
		},
		Status: corev1.NodeStatus{
			Capacity: fakeRoom(), Allocatable: fakeRoom(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fakeNodeIP(index).String()}, {Type: corev1.NodeHostName, Address: name},
			},
		},
	}
	if !alone {
		node.Spec.Taints = []corev1.Taint{{Key: addons.FakeNodeKey, Value: addons.FakeNodeValue, Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

func fakeRoom() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1M"), corev1.ResourceMemory: resource.MustParse("1Pi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Pi"), corev1.ResourcePods: resource.MustParse("1M"),
	}
}

// completeFake makes the fake nodes that are missing, with the rights of who plays them, and waits until pods can come.
// Run again, it changes nothing.
func (c *Cluster) completeFake(ctx context.Context, config Config) error {
	if config.Fake == 0 {
		return nil
	}
	if err := c.kubectl(ctx, config, addons.ForFake(config.isAlone()), "apply", "--server-side", "--filename=-"); err != nil {
		return fmt.Errorf("apply what fake nodes need: %w", err)
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	for index := range config.Fake {
		_, err := client.CoreV1().Nodes().Create(ctx, fakeNode(index, config.isAlone()), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make a fake node: %w", err)
		}
	}
	return c.waitForEach(ctx, "fake nodes not ready", fakeNodeNames(config.Fake), func(ctx context.Context, client kubernetes.Interface) ([]string, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: addons.FakeNodeKey})
		if err != nil {
			return nil, err
		}
		var ready []string
		for _, node := range nodes.Items {
			if isReady(node) && takesPods(node) {
				ready = append(ready, node.Name)
			}
		}
		return ready, nil
	})
}

// takesPods tells whether a fake node has no taint but its own: Kubernetes adds some to each new node, and removes them a
// moment after it is ready.
func takesPods(node corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key != addons.FakeNodeKey {
			return false
		}
	}
	return true
}

func isFake(node corev1.Node) bool { return node.Labels[addons.FakeNodeKey] == addons.FakeNodeValue }

// checkFake refuses what can't be had of a cluster that has or had fake nodes.
func (c *Cluster) checkFake(config Config, options Options) error {
	switch {
	case options.Fake != 0 && options.Fake < config.Fake:
		return fmt.Errorf("cluster %q has %d fake nodes, and they aren't removed: ask for as many or more, or make a smaller cluster after `localcluster down --name %s`", c.Name, config.Fake, c.Name)
	case config.Fake != 0 && config.isAlone() != options.ControlPlaneOnly:
		return fmt.Errorf("cluster %q has fake nodes, which take other pods beside real nodes than alone: remove it with `localcluster down --name %s` first, or choose another --name", c.Name, c.Name)
	default:
		return nil
	}
}
