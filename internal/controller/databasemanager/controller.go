// SPDX-License-Identifier: Apache-2.0

// Package databasemanager is the controller of DatabaseManager:
//
//	cached objects + answers of the prober ─observe─▶ Snapshot
//	spec + what is recorded                ─render──▶ Desired
//	Snapshot + Desired + now               ─plan────▶ Plan
//	Plan                                   ─execute─▶ API server
//	Snapshot + Plan + outcome              ─report──▶ status, events
//
// What to do is decided in internal/plan; this package reads and writes.
package databasemanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"coolops.cn/database-manager/internal/dbclient"
	"coolops.cn/database-manager/internal/kit"
	"coolops.cn/database-manager/internal/objects"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

const (
	// name is the controller's name in logs, metrics and events.
	name = "databasemanager"

	// syncLimit is how long one sync may take; the longest is a dozen requests.
	syncLimit = time.Minute

	// callLimit is how long one call of the prober may take.
	callLimit = time.Second

	// askInterval is the time between two calls to a member.
	askInterval = 2 * time.Second

	// cacheLag is how long to wait for a cache to show our own write. The
	// write's own event usually comes first.
	cacheLag = 100 * time.Millisecond
)

// Engine is one database engine, and how to reach a member of it.
type Engine struct {
	plan.Engine
	// Dial prepares a connection to one member.
	Dial func(dbclient.Target) dbclient.Connection
}

// knownEngine is an engine with what it says of its parameters, which each sync asks
// for.
type knownEngine struct {
	Engine
	parameters []plan.Parameter
	// liveNames are the names of those that are read from a member, separated by commas.
	liveNames string
}

func newKnownEngine(engine Engine) knownEngine {
	parameters := engine.Parameters()
	return knownEngine{engine, parameters, strings.Join(slices.Sorted(maps.Keys(plan.LiveDefaults(parameters))), ",")}
}

// Parameters are the engine's; nobody changes them.
func (e knownEngine) Parameters() []plan.Parameter { return e.parameters }

// Config is what the controller depends on.
type Config struct {
	// Kubernetes and Databases are the clients that write.
	Kubernetes kubernetes.Interface
	Databases  versioned.Interface
	// Children and Owners are the informers that the controller reads from, by
	// the namespace that they watch: Children of what carries our label
	// managed-by, Pods of those that our Services select, Owners of every
	// DatabaseManager, Credentials of the Secrets that spec.auth may name.
	Children map[string]informers.SharedInformerFactory
	Pods     map[string]informers.SharedInformerFactory
	Owners   map[string]externalversions.SharedInformerFactory

	Credentials map[string]informers.SharedInformerFactory
	// OperatorNamespace is where the operator's pods run; empty if it runs
	// outside of the cluster.
	OperatorNamespace string
	// Defaults are what new databases get where their specs say nothing.
	Defaults objects.Defaults
	// Engines are those that spec.dbtype may name.
	Engines []Engine
	// MayAct tells whether this process may change engines for so long. Writes
	// to the API server are guarded on their way.
	MayAct func(time.Duration) bool
	// Recorder takes events.
	Recorder events.EventRecorder
	// Metrics counts syncs.
	Metrics *kit.Metrics
}

// Controller keeps databases as their DatabaseManagers ask for.
type Controller struct {
	config  Config
	engines map[v1alpha1.DatabaseType]knownEngine
	caches  caches
	prober  *kit.Prober[target, plan.EngineState]
	loop    *kit.Loop

	mu sync.Mutex
	// lastSeen are the Secrets and the topologies of databases, by the database's
	// UID, as they were last seen.
	lastSeen map[types.UID]map[plan.Ref]metav1.Object
	// absentSince is, by a database's UID, since when its workload has had no pod.
	absentSince map[types.UID]time.Time
	// unservedSince is, by a database's UID, since when the member that its topology
	// names hasn't taken writes while another could take its place, forsakenSince since
	// when none could, and leavingSince since when that one's pod is being deleted.
	unservedSince, forsakenSince, leavingSince map[types.UID]time.Time
	// unwrittenSince is, by a database's UID, since when its status hasn't been what is
	// written.
	unwrittenSince map[types.UID]time.Time
}

// New returns the controller with its handlers in place. The informer
// factories are to be started afterwards.
func New(config Config) (*Controller, error) {
	c := &Controller{
		config:   config,
		engines:  map[v1alpha1.DatabaseType]knownEngine{},
		caches:   caches{View: kit.NewView()},
		lastSeen: map[types.UID]map[plan.Ref]metav1.Object{},

		absentSince: map[types.UID]time.Time{}, unservedSince: map[types.UID]time.Time{}, forsakenSince: map[types.UID]time.Time{}, leavingSince: map[types.UID]time.Time{},
		unwrittenSince: map[types.UID]time.Time{},
	}
	for _, engine := range config.Engines {
		c.engines[engine.Type()] = newKnownEngine(engine)
	}
	c.loop = kit.NewLoop(kit.LoopConfig{Name: name, Sync: c.sync, TimeLimit: syncLimit, Metrics: config.Metrics})
	c.prober = kit.NewProber(kit.ProberConfig[target, plan.EngineState]{
		Dial:      func(t target) kit.Connection[plan.EngineState] { return c.engines[t.engine].Dial(t.Target) },
		CallLimit: callLimit,
		OnChange:  c.loop.Enqueue,
		IsNews:    plan.IsNews,
	})
	if err := c.openCaches(); err != nil {
		return nil, err
	}
	return c, nil
}

// WaitForCaches waits until the handlers were given everything that exists.
func (c *Controller) WaitForCaches(ctx context.Context) error { return c.caches.Wait(ctx) }

// Run works until the context ends, and returns when the last sync has. The
// caches must have synced.
func (c *Controller) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { c.prober.Run(ctx) })
	running.Go(func() { c.loop.Run(ctx, workers) })
	running.Wait()
}

// sync brings one database closer to its spec.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	database, exists := c.caches.databases.Get(key)
	if !exists {
		c.forget(key)
		return nil
	}
	if behind := c.caches.OwnWrites.Behind(key); behind != "" {
		return &kit.Wait{After: cacheLag, Reason: "the cache of " + behind + " is behind our own write"}
	}
	if c.prober.IsOutdated(key) {
		return &kit.Wait{After: cacheLag, Reason: "a member hasn't answered since something was done to it"}
	}
	now := time.Now()
	snapshot := c.observe(key, database, now)
	desired, problem := c.render(snapshot, now)
	todo := plan.Make(snapshot, desired, problem, now)
	outcome, failure := c.execute(ctx, key, snapshot, desired, todo)
	unwritten, err := c.report(ctx, key, snapshot, desired, todo, outcome, now)
	if failure == nil {
		failure = err
	}
	if todo.IsUrgent {
		c.hurry(key, snapshot)
	}
	return atLatest(next(todo, outcome, failure), unwritten)
}

// hurry has the members asked at once: one of them is about to say something.
func (c *Controller) hurry(key cache.ObjectName, snapshot plan.Snapshot) {
	for _, member := range snapshot.Members {
		c.prober.Hurry(key, member.Pod.UID)
	}
}

// render returns what the spec asks for, or the problem that keeps it from
// being rendered.
func (c *Controller) render(snapshot plan.Snapshot, now time.Time) (plan.Desired, *plan.Problem) {
	engine, isKnown := c.engines[snapshot.Database.Spec.DBType]
	if !isKnown {
		return plan.Desired{}, &plan.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("spec.dbtype is %q, which this operator doesn't know; nothing was changed", snapshot.Database.Spec.DBType),
		}
	}
	recorded, problem := snapshot.Recall(engine, now)
	if problem != nil {
		return plan.Desired{}, problem
	}
	return objects.Render(objects.Input{
		Database: snapshot.Database, Engine: engine, OperatorNamespace: c.config.OperatorNamespace,
		Defaults: c.config.Defaults, Recorded: recorded,
	})
}

// next says when the database is to be looked at again.
func next(todo plan.Plan, outcome plan.Outcome, failure error) error {
	problem := todo.Problem
	if problem == nil {
		problem = todo.Aside
	}
	if outcome.Problem != nil {
		problem = outcome.Problem
	}
	switch {
	case failure != nil:
		return failure
	case todo.WakeIn > 0 && (problem == nil || problem.Retry == 0 || problem.Retry > todo.WakeIn):
		return &kit.Wait{After: todo.WakeIn, Reason: "what passes by itself is given a moment"}
	case problem != nil && problem.Retry > 0:
		return &kit.Wait{After: problem.Retry, Reason: problem.Reason}
	case problem != nil:
		return &kit.Stalled{Reason: problem.Reason}
	default:
		return nil
	}
}

// atLatest is what a sync returns, if the status has still to be written after a
// while.
func atLatest(result error, unwritten time.Duration) error {
	wait, isWait := errors.AsType[*kit.Wait](result)
	_, isStalled := errors.AsType[*kit.Stalled](result)
	if unwritten > 0 && (result == nil || isStalled || isWait && wait.After > unwritten) {
		return &kit.Wait{After: unwritten, Reason: "a status that may pass is given a moment"}
	}
	return result
}

// forget drops what is remembered of a database that is gone.
func (c *Controller) forget(key cache.ObjectName) {
	c.prober.SetMembers(key, nil, time.Time{})
	c.caches.OwnWrites.Forget(key)
}
