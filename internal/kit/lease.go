// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// leaseDuration is how long a lease holds that isn't renewed.
	leaseDuration = 15 * time.Second
	// renewDeadline is for how long a renewal is tried before the lease is lost.
	renewDeadline = 10 * time.Second
	// renewInterval is the time between two renewals.
	renewInterval = 2 * time.Second
	// retryPeriod is how often a standby looks. client-go stretches it by up to
	// 2.2, and a standby is late twice, when it sees the last renewal and when it
	// sees that none followed: 2 s in all.
	retryPeriod = 450 * time.Millisecond
	// releaseTimeout bounds the update that gives the lease up.
	releaseTimeout = 5 * time.Second
)

// ErrLeaseLost says that the lease couldn't be renewed, or that somebody else
// has it. What this process knows may be old: it has to end.
var ErrLeaseLost = errors.New("the leader's lease was lost")

// errNotLeading is what a write is refused with.
var errNotLeading = errors.New("this process doesn't hold the leader's lease, and writes nothing")

// Lease is the right to write, which one process has at a time.
//
//	standby ──acquired──▶ leading ──clean stop──▶ work has ended ──▶ given up
//	                         └──not renewed, or somebody else's──▶ lost
//
// Time is counted from before each renewal was sent. Others count from after
// they have seen it, so that theirs never ends before ours.
type Lease struct {
	lock     resourcelock.Interface
	onChange func(isLeading bool)

	mu         sync.Mutex
	validUntil time.Time
	renewed    time.Time
	wasHeld    bool
	lost       chan struct{}
}

// NewLease returns a lease that isn't held. onChange is told when it is, and
// when it isn't any more.
func NewLease(lock resourcelock.Interface, onChange func(isLeading bool)) *Lease {
	return &Lease{lock: lock, onChange: onChange, lost: make(chan struct{})}
}

// Run waits for the lease and then calls lead, once, until the context ends;
// the lease is given up after lead has returned. If the lease is lost, lead's
// context ends, and Run returns ErrLeaseLost once lead has.
func (l *Lease) Run(ctx context.Context, lead func(context.Context)) error {
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	// A clean stop must not end the renewals before the work has ended.
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()
	returned := make(chan struct{})
	elector, err := l.elector(func(context.Context) {
		defer close(returned)
		l.onChange(true)
		lead(working)
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	case <-l.lost:
	}
	stopWorking()
	if l.hasBeenHeld() {
		<-returned
	}
	stopElecting()
	<-ended
	if !l.hasBeenHeld() {
		return nil
	}
	<-returned // where it was acquired a moment ago
	l.onChange(false)
	if ctx.Err() == nil || !l.IsValid() {
		return ErrLeaseLost
	}
	return l.release(ctx)
}

func (l *Lease) elector(lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          (*renewals)(l),
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		// It would give the lease away while syncs still run.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {}, // Run sees it
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the leader election: %w", err)
	}
	return elector, nil
}

// IsValid tells whether this process has the lease, and nobody else can have it.
func (l *Lease) IsValid() bool { return l.IsValidFor(0) }

// IsValidFor tells whether the lease holds for some more time, such as a call's
// time-out, without being renewed.
func (l *Lease) IsValidFor(needed time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(needed).Before(l.validUntil)
}

// Guard wraps a client's transport: without the lease, only reads pass. A
// process that was stopped for a while, and doesn't know it, is caught here.
func (l *Lease) Guard(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet && request.Method != http.MethodHead && !l.IsValid() {
			if request.Body != nil {
				_ = request.Body.Close() // it isn't sent
			}
			return nil, errNotLeading
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// release empties the holder, so that another one needn't wait for the lease's end.
func (l *Lease) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record, _, err := l.lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("give up the leader's lease: %w", err)
	}
	if record.HolderIdentity != l.lock.Identity() {
		return ErrLeaseLost
	}
	record.HolderIdentity = ""
	record.LeaseDurationSeconds = 1
	record.RenewTime = metav1.Now()
	if err := l.lock.Update(ctx, *record); err != nil {
		return fmt.Errorf("give up the leader's lease: %w", err)
	}
	klog.FromContext(ctx).Info("Gave up the leader's lease")
	return nil
}

func (l *Lease) hasBeenHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wasHeld
}

// renewals is the lock as the elector sees it: it notes since when each renewal
// counts, renews no more often than it has to, and sees when the lease is lost.
type renewals Lease

// Get reads the record. One that names somebody else ends our term at once,
// where the elector would go on trying until its deadline.
func (r *renewals) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := r.lock.Get(ctx)
	if err == nil && record.HolderIdentity != r.lock.Identity() {
		r.lose()
	}
	return record, raw, err
}

func (r *renewals) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.validUntil = time.Time{}
	if !r.wasHeld {
		return
	}
	select {
	case <-r.lost:
	default:
		close(r.lost)
	}
}

// Create makes the record.
func (r *renewals) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.renew(func() error { return r.lock.Create(ctx, record) })
}

// Update writes the record. The elector, which looks as often as a standby
// does, is told that all is well between two renewals.
func (r *renewals) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	r.mu.Lock()
	isFresh := r.wasHeld && time.Since(r.renewed) < renewInterval-retryPeriod/2
	r.mu.Unlock()
	if isFresh {
		return nil
	}
	return r.renew(func() error { return r.lock.Update(ctx, record) })
}

func (r *renewals) renew(write func() error) error {
	sent := time.Now()
	if err := write(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed, r.validUntil, r.wasHeld = sent, sent.Add(leaseDuration), true
	return nil
}

// RecordEvent tells nobody: the operator may write no core events.
func (r *renewals) RecordEvent(string) {}

// Identity names this process.
func (r *renewals) Identity() string { return r.lock.Identity() }

// Describe names the lease.
func (r *renewals) Describe() string { return r.lock.Describe() }
