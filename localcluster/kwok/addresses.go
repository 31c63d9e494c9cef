// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// podRange has the addresses of fake pods, 134 million. It is a part of 240.0.0.0/4, which is reserved: no router passes
// it on. The upper half of that has the addresses of fake nodes.
var podRange = netip.MustParsePrefix("240.0.0.0/5")

// podAddresses gives every pod an address that no other pod has. Those of kwok itself aren't unique: after a restart it
// gives away again what pods that run have, and it goes on behind the end of its range.
type podAddresses struct {
	client kubernetes.Interface
	mu     sync.Mutex
	// last is the highest address that a pod has or had.
	last netip.Addr
	// recent are those that were given lately, by the pods' UIDs: kwok may ask for a pod again, and a pod has one address.
	recent map[string]string
}

// maxRecent is more than are asked for again at a time.
const maxRecent = 10_000

func newPodAddresses(client kubernetes.Interface) *podAddresses {
	return &podAddresses{client: client, last: podRange.Addr(), recent: map[string]string{}}
}

// functions are what kwok's stages ask for addresses, in place of its own.
func (a *podAddresses) functions() gotpl.FuncMap {
	return gotpl.FuncMap{"PodIPsWith": func(node string, hostNetwork bool, uid, _, _ string) ([]string, error) {
		if hostNetwork {
			return a.ofNode(node)
		}
		address, err := a.of(uid)
		return []string{address}, err
	}}
}

// of gives each pod an address of its own, until all were given.
func (a *podAddresses) of(uid string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.recent[uid]; ok {
		return address, nil
	}
	next := a.last.Next()
	if !podRange.Contains(next) {
		return "", fmt.Errorf("all addresses of %s were given to pods: make a new cluster", podRange)
	}
	if len(a.recent) == maxRecent {
		clear(a.recent)
	}
	a.last, a.recent[uid] = next, next.String()
	return a.recent[uid], nil
}

const pollInterval = 200 * time.Millisecond

// awaitUsed is skipUsed as soon as the API server allows it: the rights come a moment later than this process.
func (a *podAddresses) awaitUsed(ctx context.Context) error {
	var lastErr error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		lastErr = a.skipUsed(ctx)
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("list the pods: %w", lastErr)
	}
	return nil
}

// skipUsed goes on behind the addresses that pods have from an earlier process.
func (a *podAddresses) skipUsed(ctx context.Context) error {
	pods := a.client.CoreV1().Pods(metav1.NamespaceAll)
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return pods.List(ctx, options)
	})
	return list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("%T isn't a pod", object)
		}
		a.skip(pod.Status.PodIP)
		return nil
	})
}

// skip goes on behind an address, if it is one of ours.
func (a *podAddresses) skip(used string) {
	address, err := netip.ParseAddr(used)
	if err != nil {
		return // it has none yet
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if podRange.Contains(address) && a.last.Less(address) {
		a.last = address
	}
}

// ofNode are the addresses of a node, which pods in its network have.
func (a *podAddresses) ofNode(name string) ([]string, error) {
	node, err := a.client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			addresses = append(addresses, address.Address)
		}
	}
	return addresses, nil
}
