//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	foov1alpha1 "coolops.cn/database-manager/pkg/apis/samplecontroller/v1alpha1"
	"coolops.cn/database-manager/pkg/generated/informers/externalversions"
)

// kind is a kind of resource, of which many are made alike.
type kind interface {
	// create makes one, patch changes one, and both return its generation.
	create(ctx context.Context, namespace, name string) (int64, error)
	patch(ctx context.Context, namespace, name, patch string) (int64, error)
	remove(ctx context.Context, namespace, name string) error
	informer(factory externalversions.SharedInformerFactory) cache.SharedIndexInformer
	// isDone tells whether one is as its generation asks for.
	isDone(object any, generation int64) bool
}

// databases are DatabaseManagers of an engine, with so many members.
type databases struct {
	engine    v1alpha1.DatabaseType
	members   int32
	isDurable bool
	// change is what is particular to them; nil if nothing is.
	change func(*v1alpha1.DatabaseManagerSpec)
}

func (d databases) String() string {
	text := fmt.Sprintf("%s, %d members", d.engine, d.members)
	if d.members == 1 {
		text = fmt.Sprintf("%s, 1 member", d.engine)
	}
	if d.isDurable {
		text += ", storage"
	}
	return text
}

// stem begins the names of those of a kind.
func (d databases) stem() string {
	if d.isDurable {
		return fmt.Sprintf("%s-durable-%d", d.engine, d.members)
	}
	return fmt.Sprintf("%s-ephemeral-%d", d.engine, d.members)
}

// create has the name be the stem, too, so that it is in the names of all that the
// database consists of.
func (d databases) create(ctx context.Context, namespace, name string) (int64, error) {
	spec := v1alpha1.DatabaseManagerSpec{DeploymentName: name, DBType: d.engine, Replicas: &d.members}
	if d.isDurable {
		spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse("64Mi")}
	}
	if d.change != nil {
		d.change(&spec)
	}
	created, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(ctx, &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	return created.Generation, nil
}

func (d databases) patch(ctx context.Context, namespace, name, patch string) (int64, error) {
	patched, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	return patched.Generation, nil
}

func (d databases) remove(ctx context.Context, namespace, name string) error {
	return env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func (d databases) informer(factory externalversions.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.Coolops().V1alpha1().DatabaseManagers().Informer()
}

func (d databases) isDone(object any, generation int64) bool {
	database, isDatabase := object.(*v1alpha1.DatabaseManager)
	if !isDatabase {
		return false
	}
	ready := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady)
	progressing := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionProgressing)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration >= generation &&
		progressing != nil && progressing.Status == metav1.ConditionFalse
}

// foos are Foos with one pod.
type foos struct{}

func (foos) create(ctx context.Context, namespace, name string) (int64, error) {
	created, err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &foov1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: foov1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	return created.Generation, nil
}

func (foos) patch(ctx context.Context, namespace, name, patch string) (int64, error) {
	patched, err := env.resources.SamplecontrollerV1alpha1().Foos(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	return patched.Generation, nil
}

func (foos) remove(ctx context.Context, namespace, name string) error {
	return env.resources.SamplecontrollerV1alpha1().Foos(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func (foos) informer(factory externalversions.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.Samplecontroller().V1alpha1().Foos().Informer()
}

// isDone asks for what the twin reports, too.
func (foos) isDone(object any, generation int64) bool {
	foo, isFoo := object.(*foov1alpha1.Foo)
	return isFoo && foo.Generation >= generation && foo.Spec.Replicas != nil && foo.Status.AvailableReplicas == *foo.Spec.Replicas
}

// fleet are the resources of one kind in a namespace.
type fleet struct {
	kind
	namespace string

	mu   sync.Mutex
	seen map[string]any
	// asked are those that were asked for something and aren't done.
	asked map[string]*wish
	// took is how long each was asked before it was done.
	took []time.Duration
}

// wish is what a resource was asked for, and when.
type wish struct {
	at         time.Time
	generation int64
}

// newFleet sees what there is and comes, until the test ends.
func newFleet(t *testing.T, kind kind, namespace string) *fleet {
	t.Helper()
	f := &fleet{kind: kind, namespace: namespace, seen: map[string]any{}, asked: map[string]*wish{}}
	factory := externalversions.NewSharedInformerFactoryWithOptions(env.resources, 0, externalversions.WithNamespace(namespace))
	informer := kind.informer(factory)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.see, UpdateFunc: func(_, object any) { f.see(object) }, DeleteFunc: f.miss,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	if err := factory.WaitForCacheSyncWithContext(t.Context()).AsError(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) see(object any) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return // a tombstone, of what is gone
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[accessor.GetName()] = object
	f.look(accessor.GetName())
}

func (f *fleet) miss(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return // it has a name
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, key[strings.IndexByte(key, '/')+1:])
}

// look sees whether a resource is as it was asked to be.
func (f *fleet) look(name string) {
	asked := f.asked[name]
	if asked != nil && f.isDone(f.seen[name], asked.generation) {
		f.took = append(f.took, time.Since(asked.at))
		delete(f.asked, name)
	}
}

// names are those of so many resources, from a number on, with the same beginning.
func names(beginning string, from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s-%d", beginning, i))
	}
	return all
}

// clients is how many requests for resources are under way at once.
const clients = 16

// inParallel does something with each of the names, several at a time.
func inParallel(t *testing.T, names []string, do func(ctx context.Context, name string) error) {
	t.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	next := make(chan string)
	for range clients {
		running.Go(func() {
			for name := range next {
				if err := do(t.Context(), name); err != nil {
					mu.Lock()
					failures = append(failures, fmt.Errorf("%s: %w", name, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	running.Wait()
	if len(failures) > 0 {
		t.Fatalf("%d of %d failed, the first with: %v", len(failures), len(names), failures[0])
	}
}

// ask asks the resources for something, and awaits nothing.
func (f *fleet) ask(t *testing.T, names []string, do func(ctx context.Context, name string) (int64, error)) {
	t.Helper()
	inParallel(t, names, func(ctx context.Context, name string) error {
		asked := &wish{at: time.Now(), generation: math.MaxInt64}
		f.mu.Lock()
		f.asked[name] = asked
		f.mu.Unlock()
		generation, err := do(ctx, name)
		f.mu.Lock()
		defer f.mu.Unlock()
		asked.generation = generation
		f.look(name)
		return err
	})
}

// make makes resources, change patches them.
func (f *fleet) make(t *testing.T, names []string) {
	t.Helper()
	f.ask(t, names, func(ctx context.Context, name string) (int64, error) { return f.create(ctx, f.namespace, name) })
}

func (f *fleet) change(t *testing.T, names []string, patch string) {
	t.Helper()
	f.ask(t, names, func(ctx context.Context, name string) (int64, error) { return f.patch(ctx, f.namespace, name, patch) })
}

// awaitDone waits until all are as they were asked to be, and returns how long each
// took, of those that were done since the last call.
func (f *fleet) awaitDone(t *testing.T, bound time.Duration) []time.Duration {
	t.Helper()
	eventually(t, bound, "all are done", func(context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name := range f.asked {
			return fmt.Errorf("%d aren't, such as %s", len(f.asked), name)
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	took := f.took
	f.took = nil
	slices.Sort(took)
	return took
}

// delete deletes resources, and waits until they are gone.
func (f *fleet) delete(t *testing.T, names []string, bound time.Duration) {
	t.Helper()
	inParallel(t, names, func(ctx context.Context, name string) error { return f.remove(ctx, f.namespace, name) })
	eventually(t, bound, "all are gone", func(context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range names {
			if f.seen[name] != nil {
				return errors.New(name + " is there")
			}
		}
		return nil
	})
}

// boundFor is how long so many resources may take for something, on a machine that
// does other things, too. It ends what hangs, and judges nothing.
func boundFor(resources int) time.Duration {
	return 10*time.Minute + time.Duration(resources)*3*time.Second
}

// median is the one in the middle of what is sorted, in seconds.
func median(sorted []time.Duration) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[len(sorted)/2].Seconds()
}

// engines are those that are measured.
func engines() []v1alpha1.DatabaseType {
	var all []v1alpha1.DatabaseType
	for name := range strings.FieldsSeq(valueOf("BENCH_ENGINES", "redis valkey postgresql mariadb mysql")) {
		all = append(all, v1alpha1.DatabaseType(name))
	}
	return all
}

// databaseKinds are all kinds of databases that differ in what they consist of.
func databaseKinds() []databases {
	var all []databases
	for _, engine := range engines() {
		all = append(all, databases{engine: engine, members: 1}, databases{engine: engine, members: 1, isDurable: true}, databases{engine: engine, members: 3, isDurable: true})
	}
	return all
}
