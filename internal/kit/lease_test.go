// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stored is the Lease as the API server would hold it: an update needs the
// version that was read.
type stored struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	updates int
	// lasts is how long a write takes to be answered.
	lasts time.Duration
}

// memoryLock is one candidate's access to it. While it is cut off, every call
// fails.
type memoryLock struct {
	*stored
	identity string
	seen     int
	isCut    bool
}

var errCut = errors.New("the API server doesn't answer")

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return nil, nil, errCut
	}
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "lease")
	}
	l.seen = l.version
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() bool { return l.record == nil })
}

func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() bool { return l.seen == l.version })
}

func (l *memoryLock) write(record resourcelock.LeaderElectionRecord, isCurrent func() bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return errCut
	}
	if !isCurrent() {
		return errors.New("conflict")
	}
	if l.lasts > 0 {
		<-time.After(l.lasts)
	}
	l.version++
	l.updates++
	l.seen, l.record = l.version, &record
	return nil
}

// writes is how often the record was written.
func (s *stored) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates
}

func (l *memoryLock) cut(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return l.identity }
func (l *memoryLock) Describe() string   { return "lease" }

// candidate is a process that wants the lease, and works for as long as it has it.
type candidate struct {
	lease      *Lease
	lock       *memoryLock
	stop       context.CancelFunc
	result     chan error
	started    chan time.Time
	afterwards time.Duration
}

func newCandidate(t *testing.T, shared *stored, identity string) *candidate {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{
		lock: &memoryLock{stored: shared, identity: identity}, stop: stop,
		result: make(chan error, 1), started: make(chan time.Time, 1),
	}
	c.lease = NewLease(c.lock, func(bool) {})
	go func() {
		c.result <- c.lease.Run(ctx, func(ctx context.Context) {
			c.started <- time.Now()
			<-ctx.Done()
			time.Sleep(c.afterwards) //nolint:forbidigo // bubble time: the last sync takes this long
		})
	}()
	return c
}

// end waits until the candidate has ended, with the error that is expected.
func (c *candidate) end(t *testing.T, want error) {
	t.Helper()
	if err := <-c.result; !errors.Is(err, want) {
		t.Errorf("%s ends with %v, want %v", c.lock.identity, err, want)
	}
}

func TestOneCandidateLeadsAndRenewsEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stored{}
		first := newCandidate(t, shared, "first")
		<-first.started
		second := newCandidate(t, shared, "second")
		before := shared.writes()
		time.Sleep(time.Minute) //nolint:forbidigo // bubble time
		synctest.Wait()
		if got := shared.writes() - before; got < 25 || got > 35 {
			t.Errorf("%d renewals in a minute, want about 30", got)
		}
		if len(second.started) != 0 || second.lease.IsValid() || !first.lease.IsValid() {
			t.Error("the second candidate works beside the first")
		}
		first.stop()
		second.stop()
		if err := errors.Join(<-first.result, <-second.result); err != nil {
			t.Error(err)
		}
	})
}

func TestACleanStopGivesTheLeaseUpAfterTheWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stored{}
		first := newCandidate(t, shared, "first")
		<-first.started
		second := newCandidate(t, shared, "second")
		first.afterwards = 20 * time.Second // longer than the lease
		stopped := time.Now()
		first.stop()
		taken := (<-second.started).Sub(stopped)
		if taken < first.afterwards {
			t.Errorf("the second candidate works after %s, while the first still does", taken)
		}
		if taken > first.afterwards+2*time.Second {
			t.Errorf("the second candidate works %s after the first has ended", taken-first.afterwards)
		}
		if err := <-first.result; err != nil {
			t.Errorf("a clean stop ends with %v", err)
		}
		second.stop()
		second.end(t, nil)
	})
}

func TestACandidateThatDiesIsFollowedWithinTheLeaseAndTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stored{}
		first := newCandidate(t, shared, "first")
		<-first.started
		second := newCandidate(t, shared, "second")
		time.Sleep(time.Minute) //nolint:forbidigo // bubble time
		// To others, a process that can't reach the API server is a dead one.
		first.lock.cut(true)
		died := time.Now()
		taken := (<-second.started).Sub(died)
		if taken > leaseDuration+2*time.Second {
			t.Errorf("the second candidate works after %s", taken)
		}
		if err := <-first.result; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the first candidate ends with %v, want the lost lease", err)
		}
		second.stop()
		second.end(t, nil)
	})
}

func TestALeaseIsNoLongerValidBeforeAnotherCanHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stored{}
		first := newCandidate(t, shared, "first")
		<-first.started
		second := newCandidate(t, shared, "second")
		first.lock.cut(true)
		<-second.started
		if first.lease.IsValid() {
			t.Error("both leases are valid")
		}
		first.lock.cut(false)
		first.end(t, ErrLeaseLost)
		second.stop()
		second.end(t, nil)
	})
}

// TestALeaseCountsFromBeforeItsRenewalWasSent: another candidate counts from when it
// sees the renewal, which may be long before the answer to it comes.
func TestALeaseCountsFromBeforeItsRenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newCandidate(t, &stored{lasts: 3 * time.Second}, "slow")
		<-slow.started
		if left := leaseDuration - 3*time.Second; !slow.lease.IsValidFor(left-time.Millisecond) || slow.lease.IsValidFor(left) {
			t.Errorf("the answer took 3s, and the lease isn't valid for the %s that are left, or is for longer", left)
		}
		slow.stop()
		slow.end(t, nil)
	})
}

func TestACandidateThatFindsAnotherNameInTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stored{}
		first := newCandidate(t, shared, "first")
		<-first.started
		// As after a SIGSTOP that outlasted the lease.
		shared.mu.Lock()
		shared.version++
		shared.record.HolderIdentity = "usurper"
		shared.mu.Unlock()
		noticed := time.Now()
		if err := <-first.result; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("ends with %v, want the lost lease", err)
		}
		if took := time.Since(noticed); took > renewInterval+time.Second {
			t.Errorf("it took %s to notice", took)
		}
	})
}

func TestWithoutTheLeaseOnlyReadsPass(t *testing.T) {
	lease := NewLease(&memoryLock{stored: &stored{}, identity: "first"}, func(bool) {})
	sent := 0
	guarded := lease.Guard(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, "https://example.invalid", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := guarded.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := send(http.MethodGet); err != nil || sent != 1 {
		t.Errorf("a read: %v, %d sent", err, sent)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := send(method); !errors.Is(err, errNotLeading) || sent != 1 {
			t.Errorf("%s: %v, %d sent; want it refused", method, err, sent)
		}
	}
	lease.validUntil = time.Now().Add(time.Minute)
	if err := send(http.MethodPost); err != nil || sent != 2 {
		t.Errorf("a write with the lease: %v, %d sent", err, sent)
	}
	if !lease.IsValidFor(30*time.Second) || lease.IsValidFor(2*time.Minute) {
		t.Error("the lease's remaining time is wrong")
	}
}
