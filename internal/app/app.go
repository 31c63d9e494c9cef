// SPDX-License-Identifier: Apache-2.0

// Package app wires the operator together. It holds the one list of what the
// operator consists of: its controllers, and the engines that they know.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	redisclient "coolops.cn/database-manager/internal/dbclient/redis"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/objects"
)

// Options are what the operator is started with.
type Options struct {
	// Cluster says how the API server is reached.
	Cluster *rest.Config
	// Namespaces are those that are watched; none means all.
	Namespaces []string
	// OwnNamespace is where this process's pod runs; empty if it isn't one.
	OwnNamespace string
	// Controllers are the names of those that run; none means all.
	Controllers []string
	// Workers is how many objects each controller works on at once.
	Workers int
	// MetricsAddress, HealthAddress and PprofAddress are where to listen; "0"
	// turns a server off.
	MetricsAddress string
	HealthAddress  string
	PprofAddress   string
	// LeaseNamespace is where the leader's lease is. Empty means that this
	// process is the only one, and works without asking.
	LeaseNamespace string
	// Defaults are what new databases get where their specs say nothing.
	Defaults Defaults
	// Identity names this process in the lease; no other has the same.
	Identity string
}

// Defaults are what new databases get where their specs say nothing.
type Defaults = objects.Defaults

// operator is the operator, wired.
type operator struct {
	options     Options
	metrics     *kit.Metrics
	health      *kit.Health
	lease       *kit.Lease
	cluster     cluster
	controllers map[string]controller
}

// Run runs the operator until the context ends, and returns when everything
// that it started has. It fails if it can't start, or if it loses the leader's
// lease.
func Run(ctx context.Context, options Options) error {
	redisclient.SilenceDriver()
	operator, err := wire(options)
	if err != nil {
		return err
	}
	return operator.run(ctx)
}

// wire builds everything and starts nothing.
func wire(options Options) (*operator, error) {
	o := &operator{options: options, metrics: kit.NewMetrics(), health: &kit.Health{}}
	config := rest.CopyConfig(options.Cluster)
	// The server's own fairness decides who waits, not a guess made here.
	config.QPS = -1
	config.Wrap(o.metrics.CountRequests)
	if options.LeaseNamespace != "" {
		lease, err := newLease(config, options, o.metrics)
		if err != nil {
			return nil, err
		}
		o.lease = lease
		config.Wrap(lease.Guard)
	}
	var err error
	if o.cluster, err = connect(config, options.Namespaces); err != nil {
		return nil, err
	}
	o.cluster.mayAct, o.cluster.ownNamespace, o.cluster.defaults = o.mayAct, options.OwnNamespace, options.Defaults
	o.controllers, err = build(o.cluster, o.metrics, options.Controllers)
	return o, err
}

// mayAct tells whether this process may go on changing engines for so long.
func (o *operator) mayAct(needed time.Duration) bool {
	return o.lease == nil || o.lease.IsValidFor(needed)
}

// run starts everything. The first part that fails ends the others.
func (o *operator) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	servers, err := o.listen(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	part := func(run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for _, server := range servers {
		part(func(ctx context.Context) error { return kit.Serve(ctx, server.listener, server.handler) })
	}
	part(o.work)
	<-ctx.Done()
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// server is what is served on one address.
type server struct {
	listener net.Listener // nil if the server is turned off
	handler  http.Handler
}

// listen opens all addresses, or none.
func (o *operator) listen(ctx context.Context) ([]server, error) {
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", o.metrics.Handler())
	var servers []server
	for _, asked := range []struct {
		address string
		handler http.Handler
	}{
		{o.options.MetricsAddress, metrics},
		{o.options.HealthAddress, o.health.Handler()},
		{o.options.PprofAddress, kit.ProfileHandler()},
	} {
		listener, err := kit.Listen(ctx, asked.address)
		if err != nil {
			for _, opened := range servers {
				if opened.listener != nil {
					err = errors.Join(err, opened.listener.Close())
				}
			}
			return nil, err
		}
		servers = append(servers, server{listener, asked.handler})
	}
	return servers, nil
}

// work keeps the caches warm, also as a standby, and runs the controllers for as
// long as this process leads.
func (o *operator) work(ctx context.Context) error {
	// Syncs that are under way when the work ends still read the caches, and
	// still send their events.
	caching, stopCaching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCaching()
	stopInformers, err := o.cluster.start(caching)
	if err != nil {
		return err
	}
	defer func() {
		stopCaching()
		stopInformers()
	}()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	waiting.Go(func() { o.markReady(working) })
	if o.lease == nil {
		o.lead(ctx)
		return nil
	}
	return o.lease.Run(ctx, o.lead)
}

// markReady waits for all caches.
func (o *operator) markReady(ctx context.Context) {
	for _, controller := range o.controllers {
		if err := controller.WaitForCaches(ctx); err != nil {
			return // the process ends, or the controller says so itself
		}
	}
	o.health.MarkReady()
}

// lead runs the controllers until the context ends. None waits for another: one
// whose resource isn't installed keeps no other from working.
func (o *operator) lead(ctx context.Context) {
	var running sync.WaitGroup
	for name, controller := range o.controllers {
		running.Go(func() {
			logger := klog.FromContext(ctx).WithValues("controller", name)
			if err := controller.WaitForCaches(ctx); err != nil {
				if ctx.Err() == nil {
					logger.Error(err, "The controller can't work")
				}
				return
			}
			logger.Info("Working", "workers", o.options.Workers)
			controller.Run(ctx, o.options.Workers)
			logger.Info("Stopped")
		})
	}
	running.Wait()
}

// describe wraps an error of making a client.
func describe(what string, err error) error {
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", what, err)
	}
	return nil
}
