// SPDX-License-Identifier: Apache-2.0

// Package sizedvolume makes volumes that really have a size, and can grow, for the claims of a node's pods. It runs in
// the node's mount namespace: the kubelet sees the mounts that it makes, and they end with the node.
package sizedvolume

import (
	"context"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"coolops.cn/database-manager/localcluster/internal/apiclient"
	"coolops.cn/database-manager/localcluster/internal/disk"
)

const (
	// Name is the provisioner's name, as StorageClasses refer to it.
	Name = "localcluster.coolops.cn/sized-volume"
	// NodePath is where a node sees its disks.
	NodePath = "/disks"
	// provisionedByAnnotation is where a volume says which provisioner made it.
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
)

// disks are what volumes are made of; disk.Folder says what the methods do.
type disks interface {
	Make(ctx context.Context, name string, size int64) error
	Mount(ctx context.Context, name string) error
	Grow(ctx context.Context, name string, size int64) error
	Remove(ctx context.Context, name string) error
	DataPath(name string) string
}

// Run makes, grows and removes the node's volumes until ctx ends. Those that it finds are mounted first: after a crash
// pods wait for them.
func Run(ctx context.Context, node, kubeconfig string) error {
	disks := disk.NewFolder(NodePath)
	if err := disks.MountAll(ctx); err != nil {
		klog.ErrorS(err, "Can't mount every volume; the rest is tried again")
	}
	client, err := apiclient.Connect(ctx, kubeconfig)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	go controller.NewProvisionController(ctx, client, Name, &provisioner{node: node, disks: disks},
		controller.LeaderElection(false),
		controller.MetricsPort(0),
		controller.RateLimiter(retries()),
	).Run(ctx)
	return newResizer(node, client, disks, broadcaster.NewRecorder(scheme.Scheme, Name)).run(ctx)
}
