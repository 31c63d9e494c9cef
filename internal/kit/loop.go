// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// The back-off of a key whose sync fails: 50 ms, doubling, up to half a minute.
// There is no limit across keys: one failing key slows down no other.
const (
	backoffBase = 50 * time.Millisecond
	backoffMax  = 30 * time.Second
)

// The levels of detail of the log; at level 0 are the changes that were made, and
// from 6 on client-go logs requests.
const (
	levelDecision = 2 // what a sync found to do, and what it waits for
	levelKey      = 4 // a key on its way through the queue
	levelWatch    = 5 // each object that lists and watches bring
)

// SyncFunc brings one key's objects closer to what they should be.
type SyncFunc func(ctx context.Context, key cache.ObjectName) error

// LoopConfig is what a Loop needs.
type LoopConfig struct {
	// Name is the controller's name, in logs and metrics.
	Name string
	// Sync is called for one key at a time, and for different keys at once.
	Sync SyncFunc
	// TimeLimit is how long one call of Sync may take.
	TimeLimit time.Duration
	// Metrics counts what the loop does.
	Metrics *Metrics
}

// Loop takes keys from a queue and syncs them. A key that is queued while it
// is being synced is synced once more afterwards, never twice at the same time.
type Loop struct {
	config LoopConfig
	// logger is the process's: keys are queued by handlers, without a context.
	logger klog.Logger
	order  *order
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewLoop returns a loop. Keys may be queued before it runs.
func NewLoop(config LoopConfig) *Loop {
	type key = cache.ObjectName
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](backoffBase, backoffMax)
	order, provider := newOrder(), config.Metrics.queueProvider()
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Name: config.Name, MetricsProvider: provider, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{Name: config.Name, MetricsProvider: provider, Queue: queue})
	return &Loop{
		config: config,
		logger: klog.Background().WithValues("controller", config.Name),
		order:  order,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[key]{
			Name: config.Name, MetricsProvider: provider, DelayingQueue: delaying,
		}),
	}
}

// Enqueue asks for a key to be synced soon: something of it changed.
func (l *Loop) Enqueue(key cache.ObjectName) {
	l.order.hurry(key)
	l.add(key, false)
}

// EnqueuePatiently asks for a key to be synced once those that changed have been.
func (l *Loop) EnqueuePatiently(key cache.ObjectName) {
	l.order.mayWait(key)
	l.add(key, true)
}

// add queues a key. One that is queued already stays queued once.
func (l *Loop) add(key cache.ObjectName, canWait bool) {
	if logger := l.logger.V(levelKey); logger.Enabled() {
		logger.Info("Queueing", "key", key, "canWait", canWait)
	}
	l.queue.Add(key)
}

// EnqueueObject asks for the key of an object, patiently if it can wait.
func (l *Loop) EnqueueObject(object metav1.Object, canWait bool) {
	if canWait {
		l.EnqueuePatiently(cache.MetaObjectToName(object))
		return
	}
	l.Enqueue(cache.MetaObjectToName(object))
}

// Run syncs keys with so many workers until the context ends, and returns when
// the last sync has.
func (l *Loop) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for l.syncNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	running.Wait()
}

// syncNext waits for a key and syncs it; false once the loop is to end.
func (l *Loop) syncNext(ctx context.Context) bool {
	key, shutDown := l.queue.Get()
	if shutDown {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		// What is still queued is left for the next start.
		return false
	}
	logger := klog.FromContext(ctx).WithValues("controller", l.config.Name, "key", key)
	logger.V(levelKey).Info("Syncing")
	started := time.Now()
	err := l.syncOne(klog.NewContext(ctx, logger), key)
	took := time.Since(started)
	l.config.Metrics.observeSync(l.config.Name, resultOf(err), took)
	logger.V(levelKey).Info("Sync ended", "result", resultOf(err), "took", took)
	l.schedule(logger, key, err)
	return true
}

// syncOne calls Sync within the time limit, and turns a panic into an error.
func (l *Loop) syncOne(ctx context.Context, key cache.ObjectName) (err error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.TimeLimit)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			klog.FromContext(ctx).Error(&panicked{value}, "Sync panicked", "stack", string(debug.Stack()))
			err = &panicked{value}
		}
	}()
	return l.config.Sync(ctx, key)
}

// schedule decides when the key is looked at again.
func (l *Loop) schedule(logger klog.Logger, key cache.ObjectName, err error) {
	var wait *Wait
	var stalled *Stalled
	switch {
	case err == nil:
		l.queue.Forget(key)
	case errors.As(err, &wait):
		l.queue.Forget(key)
		l.queue.AddAfter(key, wait.After)
		logger.V(levelDecision).Info("Waiting", "after", wait.After, "reason", wait.Reason)
	case errors.As(err, &stalled):
		l.queue.Forget(key)
		logger.V(levelDecision).Info("Stalled", "reason", stalled.Reason)
	case errors.Is(err, context.Canceled):
		// The process is ending; the next one starts with every key.
	default:
		l.order.mayWait(key)
		l.queue.AddRateLimited(key)
		logger.Error(err, "Sync failed", "failures", l.queue.NumRequeues(key))
	}
}
