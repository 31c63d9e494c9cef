// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// logbook keeps what is logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) logger(verbosity int) klog.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: verbosity})
}

// expect wants as many lines as there are parts, each with its part.
func (l *logbook) expect(t *testing.T, parts ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) != len(parts) {
		t.Fatalf("got %d lines, want %d: %q", len(l.lines), len(parts), l.lines)
	}
	for i, part := range parts {
		if !strings.Contains(l.lines[i], part) {
			t.Errorf("line %d is %s, want one with %s", i, l.lines[i], part)
		}
	}
}

func TestTheWayOfAKeyIsLoggedInOrder(t *testing.T) {
	for sentence, row := range map[string]struct {
		verbosity int
		want      []string
	}{
		"step by step":    {levelKey, []string{`"Queueing"`, `"Syncing"`, `"Sync ended"`, `"Waiting"`}},
		"as what decides": {levelDecision, []string{`"Waiting"`}},
		"not at all":      {0, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			book := &logbook{}
			synctest.Test(t, func(t *testing.T) {
				loop := NewLoop(LoopConfig{Name: "test", TimeLimit: time.Minute, Metrics: NewMetrics(), Sync: func(context.Context, cache.ObjectName) error {
					return &Wait{After: time.Hour, Reason: "test"}
				}})
				logger := book.logger(row.verbosity)
				loop.logger = logger
				loop.Enqueue(named("a"))
				ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
				var running sync.WaitGroup
				running.Go(func() { loop.Run(ctx, 1) })
				synctest.Wait()
				cancel()
				running.Wait()
			})
			book.expect(t, row.want...)
		})
	}
}

func TestWhatAHandlerIsCalledForIsLogged(t *testing.T) {
	book := &logbook{}
	changes := handler[*corev1.Pod]{notify: func(*corev1.Pod, Change) {}, logger: book.logger(levelWatch)}
	pod := aPod("1", "a")
	pod.ResourceVersion = "7"
	changes.OnAdd(pod, true)
	book.expect(t, `"Handling" "type"="*v1.Pod"`)
	if line := book.lines[0]; !strings.Contains(line, `"resourceVersion"="7"`) || !strings.Contains(line, `"IsInitial"=true`) {
		t.Errorf("got %s", line)
	}
}

// TestAResourceThatIsMissingIsNamedAndWaitedFor begins without the resource.
func TestAResourceThatIsMissingIsNamedAndWaitedFor(t *testing.T) {
	client := fake.NewClientset(aPod("1", "a"))
	var isServed atomic.Bool
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !isServed.Load(), nil, apierrors.NewNotFound(corev1.Resource("pods"), "")
	})
	told := make(chan struct{})
	var once sync.Once
	logger := funcr.New(func(_, line string) {
		if strings.Contains(line, "CustomResourceDefinition") && strings.Contains(line, `"resource"="pods"`) {
			once.Do(func() { close(told) })
		}
	}, funcr.Options{})
	view, cached := NewView(), Cache[*corev1.Pod]{}
	factory := informers.NewSharedInformerFactory(client, 0)
	err := Open(view, &cached, "", factory.Core().V1().Pods().TypedInformer(), corev1.Resource("pods"), nil, func(*corev1.Pod, Change) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(klog.NewContext(t.Context(), logger), time.Minute, errors.New("a minute has passed"))
	defer cancel()
	factory.StartWithContext(ctx)
	select {
	case <-told:
	case <-ctx.Done():
		t.Fatal("nothing is said of the missing resource")
	}
	isServed.Store(true)
	if err := view.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, exists := cached.Get(cache.MetaObjectToName(aPod("1", "a"))); !exists {
		t.Error("the cache doesn't fill once the resource is there")
	}
}
