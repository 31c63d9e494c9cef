// SPDX-License-Identifier: Apache-2.0

package app

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"coolops.cn/database-manager/internal/kit"
)

const (
	// leaseName is the name of the leader's lease.
	leaseName = "database-manager"
	// leaseCallLimit is how long one request about the lease may take; a
	// renewal is tried twice before the lease is lost.
	leaseCallLimit = 5 * time.Second
)

// newLease makes the leader's lease. Its own client isn't guarded by it.
func newLease(config *rest.Config, options Options, metrics *kit.Metrics) (*kit.Lease, error) {
	config = rest.CopyConfig(config)
	config.Timeout = leaseCallLimit
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, describe("the leader's lease", err)
	}
	return kit.NewLease(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.LeaseNamespace, Name: leaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: options.Identity},
	}, metrics.SetLeading), nil
}
