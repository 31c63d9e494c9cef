// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/localcluster/internal/apiclient"
)

const retryDelay = time.Second

// Close admits no new connection to or from a pod until Run knows the policies: a pod that starts before that, on a
// node that starts again, would be reachable by all.
func Close(ctx context.Context, podCIDR string) error { return apply(ctx, closed(podCIDR)) }

// Run keeps the node's rules equal to what the API server says, until ctx ends. The rules stay when it ends, so that
// what is isolated remains so.
func Run(ctx context.Context, node Node, kubeconfig string) error {
	client, err := apiclient.Connect(ctx, kubeconfig)
	if err != nil {
		return err
	}
	source, err := watch(ctx, client)
	if err != nil {
		return err
	}
	source.follow(ctx, node, apply)
	return nil
}

// source has what the API server says, and tells when that may have changed.
type source struct {
	policies, namespaces, pods cache.SharedIndexInformer
	changed                    chan struct{}
}

// watch returns when all that the API server has is known.
func watch(ctx context.Context, client kubernetes.Interface) (*source, error) {
	// A factory of informers would link those of all kinds, 15 MB.
	s := &source{
		policies:   networkinginformers.NewNetworkPolicyInformer(client, metav1.NamespaceAll, 0, nil),
		namespaces: coreinformers.NewNamespaceInformer(client, 0, nil),
		pods:       coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, nil),
		changed:    make(chan struct{}, 1),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.tell() }, UpdateFunc: func(any, any) { s.tell() }, DeleteFunc: func(any) { s.tell() },
	}
	var synced []cache.DoneChecker
	for _, informer := range []cache.SharedIndexInformer{s.policies, s.namespaces, s.pods} {
		if err := informer.SetTransform(withoutManagers); err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
		synced = append(synced, informer.HasSyncedChecker())
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitFor(ctx, "policies, namespaces and pods", synced...) {
		return nil, fmt.Errorf("read policies, namespaces and pods: %w", context.Cause(ctx))
	}
	return s, nil
}

// withoutManagers keeps the larger part of each object out of memory.
func withoutManagers(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func (s *source) tell() {
	select {
	case s.changed <- struct{}{}:
	default: // it is told already, and what is read then is the newest
	}
}

// follow applies the rules of each snapshot, and tries again after a while where that failed. Changes that come while
// it does so are applied at once, together.
func (s *source) follow(ctx context.Context, node Node, apply func(context.Context, string) error) {
	applied, known := "", false
	for s.tell(); ; {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		start := time.Now()
		snapshot := s.snapshot()
		rules := snapshot.Rules(node)
		if known && rules == applied {
			continue
		}
		if err := apply(ctx, rules); err != nil {
			klog.ErrorS(err, "Can't apply the policies; the rules stay as they were", "retryAfter", retryDelay)
			time.AfterFunc(retryDelay, s.tell)
			continue
		}
		applied, known = rules, true
		klog.InfoS("Rules are applied", "policies", len(snapshot.Policies), "pods", len(snapshot.Pods), "took", time.Since(start))
	}
}

func (s *source) snapshot() Snapshot {
	return Snapshot{objects[*networkingv1.NetworkPolicy](s.policies), objects[*corev1.Namespace](s.namespaces), objects[*corev1.Pod](s.pods)}
}

func objects[T any](informer cache.SharedIndexInformer) []T {
	var all []T
	for _, object := range informer.GetStore().List() {
		if typed, ok := object.(T); ok { // it always is
			all = append(all, typed)
		}
	}
	return all
}

// apply hands rules to the kernel, all or none.
func apply(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "/usr/sbin/nft", "--file=-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
