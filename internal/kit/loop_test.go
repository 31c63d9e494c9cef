// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// runLoop runs a loop with sync in a bubble of time, for as long as use takes.
func runLoop(t *testing.T, sync SyncFunc, use func(loop *Loop)) *Metrics {
	t.Helper()
	metrics := NewMetrics()
	synctest.Test(t, func(t *testing.T) {
		loop := NewLoop(LoopConfig{Name: "test", Sync: sync, TimeLimit: time.Minute, Metrics: metrics})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			loop.Run(ctx, 2)
			close(ended)
		}()
		use(loop)
		cancel()
		<-ended
	})
	return metrics
}

// diary notes when which key was synced, in time since the first note.
type diary struct {
	mu      sync.Mutex
	begun   time.Time
	entries []string
}

func (d *diary) note(key cache.ObjectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun.IsZero() {
		d.begun = time.Now()
	}
	d.entries = append(d.entries, fmt.Sprintf("%s at %s", key.Name, time.Since(d.begun)))
}

func (d *diary) expect(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.entries, want) {
		t.Errorf("got %v, want %v", d.entries, want)
	}
}

// pass lets bubble time pass.
func pass(t *testing.T, span time.Duration) {
	t.Helper()
	<-time.After(span)
	synctest.Wait()
}

func TestAKeyIsSyncedAgain(t *testing.T) {
	for sentence, row := range map[string]struct {
		err  error
		want []string
	}{
		"never of itself, after success":               {nil, []string{"a at 0s"}},
		"never of itself, when it is stalled":          {&Stalled{Reason: "test"}, []string{"a at 0s"}},
		"after what a Wait says, each time":            {&Wait{After: time.Second, Reason: "test"}, []string{"a at 0s", "a at 1s", "a at 2s"}},
		"after a back-off that doubles, when it fails": {errors.New("test"), []string{"a at 0s", "a at 50ms", "a at 150ms", "a at 350ms", "a at 750ms", "a at 1.55s"}},
		"the same if the class is wrapped":             {fmt.Errorf("more: %w", &Wait{After: time.Second, Reason: "test"}), []string{"a at 0s", "a at 1s", "a at 2s"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			diary := &diary{}
			runLoop(t, func(_ context.Context, key cache.ObjectName) error {
				diary.note(key)
				return row.err
			}, func(loop *Loop) {
				loop.Enqueue(cache.NewObjectName("shop", "a"))
				pass(t, 2500*time.Millisecond)
			})
			diary.expect(t, row.want...)
		})
	}
}

func TestAKeyThatPanicsOrHangsStopsNoOther(t *testing.T) {
	diary := &diary{}
	metrics := runLoop(t, func(ctx context.Context, key cache.ObjectName) error {
		switch key.Name {
		case "panics":
			panic("test")
		case "hangs":
			<-ctx.Done()
			diary.note(key)
			return &Stalled{Reason: "time is up"}
		default:
			diary.note(key)
			return nil
		}
	}, func(loop *Loop) {
		for _, name := range []string{"panics", "hangs", "a", "b"} {
			loop.Enqueue(cache.NewObjectName("shop", name))
		}
		pass(t, 2*time.Minute)
		loop.Enqueue(cache.NewObjectName("shop", "c"))
		pass(t, time.Second)
	})
	diary.expect(t, "a at 0s", "b at 0s", "hangs at 1m0s", "c at 2m0s")
	response := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, line := range []string{
		`controller_syncs_total{controller="test",result="success"} 3`,
		`controller_syncs_total{controller="test",result="stalled"} 1`,
		`controller_syncs_total{controller="test",result="panic"}`,
		`workqueue_adds_total{name="test"}`,
	} {
		if !strings.Contains(response.Body.String(), line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
}

func TestRunReturnsOnlyWhenTheLastSyncHas(t *testing.T) {
	isDone := false
	runLoop(t, func(context.Context, cache.ObjectName) error {
		<-time.After(10 * time.Second)
		isDone = true
		return nil
	}, func(loop *Loop) {
		loop.Enqueue(cache.NewObjectName("shop", "a"))
		pass(t, time.Second)
	})
	if !isDone {
		t.Error("it returned while a sync still ran")
	}
}

func TestAKeyIsNeverSyncedTwiceAtOnce(t *testing.T) {
	running, most := 0, 0
	var mu sync.Mutex
	runLoop(t, func(context.Context, cache.ObjectName) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-time.After(time.Second)
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	}, func(loop *Loop) {
		for range 5 {
			loop.Enqueue(cache.NewObjectName("shop", "a"))
			pass(t, 300*time.Millisecond)
		}
		pass(t, 10*time.Second)
	})
	if most != 1 {
		t.Errorf("%d syncs ran at once", most)
	}
}

func TestWhatChangedIsSyncedBeforeWhatCanWait(t *testing.T) {
	var mu sync.Mutex
	var synced []string
	runLoop(t, func(_ context.Context, key cache.ObjectName) error {
		mu.Lock()
		synced = append(synced, key.Name)
		mu.Unlock()
		if key.Name == "long" {
			time.Sleep(time.Hour) //nolint:forbidigo // bubble time: one of the two workers is out of the way
		}
		time.Sleep(time.Second) //nolint:forbidigo // bubble time: the others are queued meanwhile
		return nil
	}, func(loop *Loop) {
		loop.Enqueue(named("long"))
		loop.Enqueue(named("first"))
		synctest.Wait()
		loop.EnqueuePatiently(named("patient"))
		loop.Enqueue(named("urgent"))
		loop.EnqueuePatiently(named("urgent"))
		time.Sleep(time.Minute) //nolint:forbidigo // bubble time
	})
	if want := []string{"urgent", "patient"}; !slices.Equal(synced[2:], want) {
		t.Errorf("synced %v, want %v at last", synced, want)
	}
}
