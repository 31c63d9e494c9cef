// SPDX-License-Identifier: Apache-2.0

package player

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/internal/played/remote"
)

const (
	// leaseLength is for how long a node's lease is good; it is renewed four times as
	// often.
	leaseLength = 40 * time.Second
	// ServesOn is how long a server that is asked to stop goes on serving: less than a
	// real one, since it is waited for by thousands of tests.
	ServesOn = 500 * time.Millisecond
)

// Options are what is played.
type Options struct {
	// Nodes is how many nodes are registered and played.
	Nodes int
	// Folder is where the socket is made.
	Folder string
	// ServesOthers has servers run also in pods of nodes that something else plays,
	// at the addresses that these have there. It can't restart their containers.
	ServesOthers bool
	// RunsAll has the pods be ready that aren't databases.
	RunsAll bool
}

// Player plays nodes, until it is stopped.
type Player struct {
	options Options
	kube    kubernetes.Interface
	socket  string
	servers *servers
	nodes   map[string]bool

	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	claims cache.Indexer

	mu   sync.Mutex
	pods map[types.UID]*pod
	made int
}

// Start registers nodes, and plays them.
func Start(ctx context.Context, config *rest.Config, options Options) (*Player, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &Player{
		options: options, kube: kube, socket: filepath.Join(options.Folder, "servers"), servers: newServers(),
		nodes: map[string]bool{}, pods: map[types.UID]*pod{},
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	end, err := remote.Serve(p.socket, p.servers)
	if err != nil {
		return nil, err
	}
	p.wait.Go(func() {
		<-p.ctx.Done()
		_ = end() // nobody asks any more
	})
	p.wait.Go(func() { p.servers.run(p.ctx) })
	if err := p.register(options.Nodes); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	if err := p.watch(); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Socket is what an operator asks the servers by.
func (p *Player) Socket() string { return p.socket }

// Passwords are all that servers of a namespace ever had.
func (p *Player) Passwords(namespace string) []string {
	p.servers.mu.Lock()
	defer p.servers.mu.Unlock()
	return slices.Collect(maps.Keys(p.servers.passwords[namespace]))
}

// Stop ends all servers. The nodes stay, and are lost after a while.
func (p *Player) Stop() error {
	p.stop()
	p.wait.Wait()
	return nil
}

// register makes the nodes, and keeps saying that they are there.
func (p *Player) register(nodes int) error {
	for i := range nodes {
		name := fmt.Sprintf("played-%d", i+1)
		p.nodes[name] = true
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
		if _, err := p.kube.CoreV1().Nodes().Create(p.ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make the node %s: %w", name, err)
		}
		if err := p.renew(name); err != nil {
			return err
		}
		if err := p.report(name); err != nil {
			return err
		}
		p.wait.Go(func() {
			ticker := time.NewTicker(leaseLength / 4)
			defer ticker.Stop()
			for {
				select {
				case <-p.ctx.Done():
					return
				case <-ticker.C:
					_ = p.renew(name) // the API server may be away, and is asked again
				}
			}
		})
	}
	return nil
}

// report says that a node is ready, and has room for all.
func (p *Player) report(name string) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10000"), corev1.ResourceMemory: resource.MustParse("1Pi"), corev1.ResourcePods: resource.MustParse("100000"),
	}
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Played", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}})
	if err != nil {
		return err
	}
	_, err = p.kube.CoreV1().Nodes().PatchStatus(p.ctx, name, patch)
	return err
}

func (p *Player) renew(name string) error {
	leases := p.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(leaseLength / time.Second)), RenewTime: &now}
	lease, err := leases.Get(p.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(p.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(p.ctx, lease, metav1.UpdateOptions{})
	return err
}

// watch begins to play what the API server shows.
func (p *Player) watch() error {
	if err := p.offerVolumes(); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(p.kube, 0)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	p.claims = claims.GetIndexer()
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	pods := factory.Core().V1().Pods().Informer()
	for informer, handle := range map[cache.SharedIndexInformer]func(object any, isGone bool){claims: p.seeClaim, volumes: p.seeVolume, pods: p.seePod} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { handle(object, false) },
			UpdateFunc: func(_, object any) { handle(object, false) },
			DeleteFunc: func(object any) {
				if tombstone, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
					object = tombstone.Obj
				}
				handle(object, true)
			},
		})
		if err != nil {
			return err
		}
	}
	factory.Start(p.ctx.Done())
	p.wait.Go(factory.Shutdown)
	for kind, isSynced := range factory.WaitForCacheSync(p.ctx.Done()) {
		if !isSynced {
			return fmt.Errorf("the cache of %s never filled", kind)
		}
	}
	return nil
}

// address is one that no other pod has.
func (p *Player) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return fmt.Sprintf("10.%d.%d.%d", 128+p.made>>16&63, p.made>>8&255, p.made&255)
}
