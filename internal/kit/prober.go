// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Connection is a way to ask one member, over and over.
type Connection[S any] interface {
	// State asks the member how it is. Its errors are shown to users, and hold
	// no secret.
	State(ctx context.Context) (S, error)
	// Close ends the connection.
	Close() error
}

// Answer is what is known of one member.
type Answer[S any] struct {
	// WatchedSince is when the member was first given to the prober.
	WatchedSince time.Time
	// ExpectedSince is since when it has been expected to answer; zero if it isn't.
	ExpectedSince time.Time
	// IsAsked tells whether a first call has ended.
	IsAsked bool
	// Answers tells whether the member answers. One that did is called silent
	// only after several failures in a row, since a single call may be late.
	Answers bool
	// Since is when Answers last changed.
	Since time.Time
	// LastAnswer is when the member last answered.
	LastAnswer time.Time
	// State is the last answer.
	State S
	// Failure is the error of the last call; nil if that succeeded.
	Failure error
}

// ProbedMember is one member to be asked.
type ProbedMember[T comparable] struct {
	// UID is what it is known by: a new pod of the same name is another member.
	UID types.UID
	// Target is how to reach it. If it changes, a new connection is made.
	Target T
	// Interval is the time from one call to the next.
	Interval time.Duration
	// IsExpected tells whether it should answer by now. When it begins to be, it is
	// asked at once.
	IsExpected bool
}

// isSame tells whether a member is reached and asked in the same way as another.
func (m ProbedMember[T]) isSame(other ProbedMember[T]) bool {
	m.IsExpected = other.IsExpected
	return m == other
}

// ProberConfig is what a Prober needs.
type ProberConfig[T comparable, S comparable] struct {
	// Dial prepares a connection to a member; the first call makes it.
	Dial func(target T) Connection[S]
	// CallLimit is how long one call may take.
	CallLimit time.Duration
	// OnChange is called with a key when what is known of one of its members
	// changes; not when it is merely confirmed.
	OnChange func(key cache.ObjectName)
	// IsNews tells whether a state says something new after another; nil means
	// that any other state does.
	IsNews func(before, after S) bool
}

func (c ProberConfig[T, S]) isNews(before, after S) bool {
	if c.IsNews == nil {
		return before != after
	}
	return c.IsNews(before, after)
}

const (
	// failuresUntilSilent is how many calls in a row have to fail until a
	// member that answered is called silent.
	failuresUntilSilent = 3

	// impatience is how much more often a member is asked that has just
	// appeared and hasn't answered yet, for at most eagerness, or whose last call
	// has failed though it did answer once.
	impatience = 8
	eagerness  = time.Minute
)

// Prober asks members how they are, each on a connection and a goroutine of its
// own, and remembers the answers, so that a sync has never to wait for one.
type Prober[T comparable, S comparable] struct {
	config ProberConfig[T, S]

	mu      sync.Mutex
	members map[cache.ObjectName]map[types.UID]*probe[T, S]
	// start runs a probe until it is cancelled; nil while the prober isn't running.
	start func(key cache.ObjectName, p *probe[T, S])
}

// probe is one member, and what is known of it.
type probe[T comparable, S comparable] struct {
	member   ProbedMember[T]
	answer   Answer[S]
	failures int
	cancel   context.CancelFunc
	// hurry ends the pause before the next call.
	hurry chan struct{}
	// outdatedAt is when something was done to the member that no call has begun
	// since; zero if one has, and has ended.
	outdatedAt time.Time
}

// NewProber returns a prober without members.
func NewProber[T, S comparable](config ProberConfig[T, S]) *Prober[T, S] {
	return &Prober[T, S]{config: config, members: map[cache.ObjectName]map[types.UID]*probe[T, S]{}}
}

// Run asks the members until the context ends, and returns when the last call has.
func (p *Prober[T, S]) Run(ctx context.Context) {
	var running sync.WaitGroup
	p.mu.Lock()
	p.start = func(key cache.ObjectName, started *probe[T, S]) {
		ctx, cancel := context.WithCancel(ctx)
		started.cancel = cancel
		member := started.member
		hurry := started.hurry
		running.Go(func() { p.ask(ctx, key, member, hurry) })
	}
	for key, probes := range p.members {
		for _, waiting := range probes {
			p.start(key, waiting)
		}
	}
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock()
	p.start = nil
	p.mu.Unlock()
	running.Wait()
}

// SetMembers says which members a key has; none, if it is gone. What is known
// of those that stay is kept, unless they are reached in another way now.
func (p *Prober[T, S]) SetMembers(key cache.ObjectName, members []ProbedMember[T], now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	former := p.members[key]
	current := make(map[types.UID]*probe[T, S], len(members))
	for _, member := range members {
		if known := former[member.UID]; known != nil && known.member.isSame(member) {
			known.expect(member.IsExpected, now)
			current[member.UID] = known
			delete(former, member.UID)
			continue
		}
		added := &probe[T, S]{member: member, answer: Answer[S]{WatchedSince: now}, hurry: make(chan struct{}, 1)}
		added.expect(member.IsExpected, now)
		current[member.UID] = added
		if p.start != nil {
			p.start(key, added)
		}
	}
	for _, gone := range former {
		if gone.cancel != nil {
			gone.cancel()
		}
	}
	if len(current) == 0 {
		delete(p.members, key)
		return
	}
	p.members[key] = current
}

// expect notes whether the member should answer by now.
func (p *probe[T, S]) expect(isExpected bool, now time.Time) {
	switch {
	case !isExpected:
		p.answer.ExpectedSince = time.Time{}
	case p.answer.ExpectedSince.IsZero():
		p.answer.ExpectedSince = now
		if p.answer.IsAsked {
			p.ask()
		}
	}
}

// ask ends the pause before the next call.
func (p *probe[T, S]) ask() {
	select {
	case p.hurry <- struct{}{}:
	default: // it is hurrying already
	}
}

// Hurry has a member asked at once, because something was just done to it.
func (p *Prober[T, S]) Hurry(key cache.ObjectName, uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.members[key][uid]; known != nil {
		known.ask()
	}
}

// Outdate says that something was done to a member, or may have been, so that what
// is known of it is older than that. It is asked at once.
func (p *Prober[T, S]) Outdate(key cache.ObjectName, uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.members[key][uid]; known != nil {
		known.outdatedAt = now
		known.ask()
	}
}

// IsOutdated tells whether something was done to a member of a key of which nobody
// has asked it since.
func (p *Prober[T, S]) IsOutdated(key cache.ObjectName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.members[key] {
		if !known.outdatedAt.IsZero() {
			return true
		}
	}
	return false
}

// Answer returns what is known of one member; false if it isn't being asked.
func (p *Prober[T, S]) Answer(key cache.ObjectName, uid types.UID) (Answer[S], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.members[key][uid]
	if known == nil {
		return Answer[S]{}, false
	}
	return known.answer, true
}

// ask asks one member until the context ends.
func (p *Prober[T, S]) ask(ctx context.Context, key cache.ObjectName, member ProbedMember[T], hurry <-chan struct{}) {
	started := time.Now()
	var connection Connection[S]
	defer func() { closeConnection(connection) }()
	for {
		began := time.Now()
		state, err := p.call(ctx, &connection, member.Target)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			closeConnection(connection)
			connection = nil
		}
		hasAnswered, changed := p.store(key, member, began, state, err)
		if changed {
			p.config.OnChange(key)
		}
		pause := member.Interval
		if !hasAnswered && time.Since(started) < eagerness || hasAnswered && err != nil {
			pause /= impatience
		}
		select {
		case <-ctx.Done():
			return
		case <-hurry:
		case <-time.After(pause):
		}
	}
}

// call asks once, on a connection that is made if there is none.
func (p *Prober[T, S]) call(ctx context.Context, connection *Connection[S], target T) (S, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.CallLimit)
	defer cancel()
	if *connection == nil {
		*connection = p.config.Dial(target)
	}
	return (*connection).State(ctx)
}

// store remembers the outcome of a call that began at a time, and tells whether the member has ever
// answered, and whether anything changed.
func (p *Prober[T, S]) store(key cache.ObjectName, member ProbedMember[T], began time.Time, state S, err error) (hasAnswered, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.members[key][member.UID]
	if known == nil || !known.member.isSame(member) {
		// It was taken away while it was being asked.
		return false, false
	}
	now := time.Now()
	before := known.answer
	answer := &known.answer
	answer.IsAsked = true
	answer.Failure = err
	if err == nil {
		known.failures = 0
		answer.Answers, answer.State, answer.LastAnswer = true, state, now
	} else if known.failures++; known.failures >= failuresUntilSilent || !before.Answers {
		answer.Answers = false
	}
	wasOutdated := !known.outdatedAt.IsZero()
	if began.After(known.outdatedAt) {
		known.outdatedAt = time.Time{}
	}
	isTurned := answer.Answers != before.Answers
	if isTurned || !before.IsAsked {
		answer.Since = now
	}
	changed = isTurned || !before.IsAsked || wasOutdated && known.outdatedAt.IsZero() || p.config.isNews(before.State, answer.State)
	return !answer.LastAnswer.IsZero(), changed
}

// closeConnection closes what there is. A connection that can't be closed is
// gone all the same, and nothing is lost with it.
func closeConnection[S any](connection Connection[S]) {
	if connection != nil {
		_ = connection.Close()
	}
}
