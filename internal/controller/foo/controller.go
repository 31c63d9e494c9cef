// SPDX-License-Identifier: Apache-2.0

// Package foo is the controller of Foo, the second resource of the articles: it
// keeps one Deployment as each Foo asks for.
//
//	cached objects               ─observe─▶ snapshot
//	spec                         ─render──▶ intent
//	snapshot + intent            ─decide──▶ plan
//	plan                         ─execute─▶ API server
//	snapshot + plan + outcome    ─report──▶ status, event
//
// render.go, plan.go and report.go are pure.
package foo

import (
	"context"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

const (
	// name is the controller's name in logs and metrics.
	name = "foo"

	// syncLimit is how long one sync may take; the longest is half a dozen requests.
	syncLimit = 30 * time.Second

	// cacheLag is how long to wait for a cache to show our own write. The
	// write's own event usually comes first.
	cacheLag = 100 * time.Millisecond
)

// Config is what the controller depends on.
type Config struct {
	// Kubernetes and Foos are the clients that write.
	Kubernetes kubernetes.Interface
	Foos       versioned.Interface
	// Children and Owners are the informers that the controller reads from, by
	// the namespace that they watch: Children of what carries our label
	// managed-by, Owners of every Foo.
	Children map[string]informers.SharedInformerFactory
	Owners   map[string]externalversions.SharedInformerFactory
	// Render says what a Foo asks for: the function Render, outside of tests.
	Render Renderer
	// Recorder takes events.
	Recorder events.EventRecorder
	// Metrics counts syncs.
	Metrics *kit.Metrics
}

// Controller keeps a Deployment for each Foo.
type Controller struct {
	config   Config
	caches   caches
	loop     *kit.Loop
	unstored *unstored
}

// New returns the controller with its handlers in place. The informer
// factories are to be started afterwards.
func New(config Config) (*Controller, error) {
	c := &Controller{config: config, caches: caches{View: kit.NewView()}, unstored: newUnstored()}
	c.loop = kit.NewLoop(kit.LoopConfig{Name: name, Sync: c.sync, TimeLimit: syncLimit, Metrics: config.Metrics})
	if err := c.openCaches(); err != nil {
		return nil, err
	}
	return c, nil
}

// WaitForCaches waits until the handlers were given everything that exists.
func (c *Controller) WaitForCaches(ctx context.Context) error { return c.caches.Wait(ctx) }

// Run works until the context ends, and returns when the last sync has. The
// caches must have synced.
func (c *Controller) Run(ctx context.Context, workers int) { c.loop.Run(ctx, workers) }

// sync brings one Foo's Deployment closer to what it asks for.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	foo, exists := c.caches.foos.Get(key)
	if !exists {
		c.caches.OwnWrites.Forget(key)
		return nil
	}
	if foo.DeletionTimestamp != nil {
		// Its Deployment names it as its owner, and is collected after it.
		return nil
	}
	if behind := c.caches.OwnWrites.Behind(key); behind != "" {
		return &kit.Wait{After: cacheLag, Reason: "the cache of " + behind + " is behind our own write"}
	}
	seen := c.observe(foo)
	todo := decide(seen, c.config.Render)
	logDecision(ctx, todo)
	done, failure := c.execute(ctx, key, seen, todo)
	if err := c.tell(ctx, key, seen, done, time.Now()); err != nil && failure == nil {
		failure = err
	}
	return next(done, failure)
}

// next says when the Foo is to be looked at again.
func next(done outcome, failure error) error {
	switch {
	case failure != nil:
		return failure
	case done.problem == nil:
		return nil
	case done.problem.retry > 0:
		return &kit.Wait{After: done.problem.retry, Reason: done.problem.reason}
	default:
		return &kit.Stalled{Reason: done.problem.reason}
	}
}
