// SPDX-License-Identifier: Apache-2.0

// Package app wires the operator together. It holds the one list of what the
// operator consists of: its controllers, and the engines that they know.
package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/controller/databasemanager"
	"coolops.cn/database-manager/internal/controller/foo"
	"coolops.cn/database-manager/internal/dbclient"
	redisclient "coolops.cn/database-manager/internal/dbclient/redis"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned/scheme"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// Options are what the operator is started with.
type Options struct {
	// Cluster says how the API server is reached.
	Cluster *rest.Config
	// Workers is how many objects each controller works on at once.
	Workers int
	// MetricsAddress and HealthAddress are where to listen; "0" turns a
	// server off.
	MetricsAddress string
	HealthAddress  string
}

// eventSource is the name that events carry as their reporting controller.
const eventSource = "coolops.cn/database-manager"

// engines lists the database engines that there are.
func engines() []databasemanager.Engine {
	return []databasemanager.Engine{
		{Engine: redis.Engine{}, Dial: func(target dbclient.Target) kit.Connection[plan.EngineState] { return redisclient.Dial(target) }},
	}
}

// controller keeps the objects of one kind as they ask for.
type controller interface {
	// WaitForCaches waits until the controller has seen everything that exists.
	WaitForCaches(ctx context.Context) error
	// Run works until the context ends, and returns when the last sync has.
	Run(ctx context.Context, workers int)
}

// operator is the operator, wired.
type operator struct {
	options     Options
	metrics     *kit.Metrics
	health      *kit.Health
	children    informers.SharedInformerFactory
	owners      externalversions.SharedInformerFactory
	events      events.EventBroadcaster
	controllers []controller
}

// Run runs the operator until the context ends, and returns when everything
// that it started has. It fails if it can't start.
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
	metrics := kit.NewMetrics()
	config := rest.CopyConfig(options.Cluster)
	// The server's own fairness decides who waits, not a guess made here.
	config.QPS = -1
	config.Wrap(metrics.CountRequests)
	resources, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for our own resources: %w", err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Kubernetes: %w", err)
	}
	o := &operator{
		options: options,
		metrics: metrics,
		health:  &kit.Health{},
		children: informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithTransform(kit.DropManagedFields),
			informers.WithTweakListOptions(kit.SelectedList(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}))),
		owners: externalversions.NewSharedInformerFactoryWithOptions(resources, 0,
			externalversions.WithTransform(kit.DropManagedFields),
			externalversions.WithTweakListOptions(kit.ConsistentList)),
		events: events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}),
	}
	recorder := o.events.NewRecorder(scheme.Scheme, eventSource)
	databases, err := databasemanager.New(databasemanager.Config{
		Kubernetes: client,
		Databases:  resources,
		Children:   o.children,
		Owners:     o.owners,
		Engines:    engines(),
		Recorder:   recorder,
		Metrics:    metrics,
	})
	if err != nil {
		return nil, err
	}
	foos, err := foo.New(foo.Config{
		Kubernetes: client,
		Foos:       resources,
		Children:   o.children,
		Owners:     o.owners,
		Render:     foo.Render,
		Recorder:   recorder,
		Metrics:    metrics,
	})
	if err != nil {
		return nil, err
	}
	o.controllers = []controller{databases, foos}
	return o, nil
}

// run starts everything. The first part that fails ends the others.
func (o *operator) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	metrics, err := kit.Listen(ctx, o.options.MetricsAddress)
	if err != nil {
		return err
	}
	health, err := kit.Listen(ctx, o.options.HealthAddress)
	if err != nil {
		if metrics != nil {
			err = errors.Join(err, metrics.Close())
		}
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
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.metrics.Handler())
	part(func(ctx context.Context) error { return kit.Serve(ctx, metrics, mux) })
	part(func(ctx context.Context) error { return kit.Serve(ctx, health, o.health.Handler()) })
	part(o.work)
	<-ctx.Done()
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// work fills the caches and runs the controllers.
//
// Leader election goes between the two: a standby keeps its caches warm, and
// only the leader's controllers run.
func (o *operator) work(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	if err := o.events.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start recording events: %w", err)
	}
	defer o.events.Shutdown()
	o.owners.StartWithContext(ctx)
	o.children.StartWithContext(ctx)
	defer o.owners.Shutdown()
	defer o.children.Shutdown()
	logger.Info("Filling the caches")
	for _, controller := range o.controllers {
		if err := controller.WaitForCaches(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	o.health.MarkReady()
	logger.Info("Working", "workers", o.options.Workers)
	var running sync.WaitGroup
	for _, controller := range o.controllers {
		running.Go(func() { controller.Run(ctx, o.options.Workers) })
	}
	running.Wait()
	logger.Info("Stopped")
	return nil
}
