// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// fakeMembers answer as they are told, and count.
type fakeMembers struct {
	mu      sync.Mutex
	state   string
	failure error
	hangs   bool
	lasts   time.Duration // of a call
	dials   int
	calls   int
	open    int
	changes int
}

func (f *fakeMembers) set(state string, failure error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.failure = state, failure
}

func (f *fakeMembers) delay(lasts time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasts = lasts
}

func (f *fakeMembers) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fakeMembers) dial(string) Connection[string] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	f.open++
	return fakeConnection{f}
}

type fakeConnection struct{ members *fakeMembers }

func (c fakeConnection) State(ctx context.Context) (string, error) {
	c.members.mu.Lock()
	hangs, lasts := c.members.hangs, c.members.lasts
	c.members.calls++
	state, failure := c.members.state, c.members.failure
	c.members.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	<-time.After(lasts)
	return state, failure
}

func (c fakeConnection) Close() error {
	c.members.mu.Lock()
	defer c.members.mu.Unlock()
	c.members.open--
	return nil
}

// runProber runs a prober in a bubble of time, for as long as use takes.
func runProber(t *testing.T, use func(p *Prober[string, string], members *fakeMembers)) *fakeMembers {
	t.Helper()
	members := &fakeMembers{state: "primary"}
	synctest.Test(t, func(t *testing.T) {
		prober := NewProber(ProberConfig[string, string]{Dial: members.dial, CallLimit: time.Second, OnChange: func(cache.ObjectName) {
			members.mu.Lock()
			defer members.mu.Unlock()
			members.changes++
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			prober.Run(ctx)
			close(ended)
		}()
		synctest.Wait()
		use(prober, members)
		cancel()
		<-ended
	})
	if members.open != 0 {
		t.Errorf("%d connections were left open", members.open)
	}
	return members
}

func orders() cache.ObjectName { return cache.NewObjectName("shop", "orders") }

func oneMember(target string) []ProbedMember[string] {
	return []ProbedMember[string]{{UID: "uid", Target: target, Interval: 2 * time.Second}}
}

// expect compares what is known of the member.
func expect(t *testing.T, p *Prober[string, string], isAsked, answers bool, state string) {
	t.Helper()
	got, isKnown := p.Answer(orders(), "uid")
	if !isKnown || got.IsAsked != isAsked || got.Answers != answers || got.State != state {
		t.Errorf("known is %+v (%t), want asked %t, answers %t, state %q", got, isKnown, isAsked, answers, state)
	}
}

func TestAMemberIsAskedAndOnlyChangesAreToldOf(t *testing.T) {
	members := runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, time.Minute)
		expect(t, p, true, true, "primary")
		if members.changes != 1 || members.dials != 1 || members.calls < 30 {
			t.Errorf("after a minute %d changes, %d connections, %d calls; want 1, 1, 30 or so", members.changes, members.dials, members.calls)
		}
		members.set("replica", nil)
		pass(t, 3*time.Second)
		expect(t, p, true, true, "replica")
	})
	if members.changes != 2 {
		t.Errorf("%d changes were told of, want 2", members.changes)
	}
}

func TestAMemberIsCalledSilentAfterThreeFailuresInARow(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, time.Second)
		members.set("", errors.New("test"))
		pass(t, 1300*time.Millisecond) // the next call, and one soon after it, since that failed
		expect(t, p, true, true, "primary")
		pass(t, 300*time.Millisecond) // the third
		expect(t, p, true, false, "primary")
		members.set("primary", nil)
		pass(t, 2*time.Second)
		expect(t, p, true, true, "primary")
		if members.changes != 3 {
			t.Errorf("%d changes were told of, want 3: the first answer, silence, and the end of it", members.changes)
		}
	})
}

func TestAMemberThatHangsIsSilentWithinFifteenSeconds(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, time.Second)
		members.mu.Lock()
		members.hangs = true
		members.mu.Unlock()
		pass(t, 15*time.Second)
		expect(t, p, true, false, "primary")
		answer, _ := p.Answer(orders(), "uid")
		if !errors.Is(answer.Failure, context.DeadlineExceeded) {
			t.Errorf("the failure is %v", answer.Failure)
		}
	})
}

func TestANewMemberIsAskedMoreOftenUntilItAnswers(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		members.set("", errors.New("not yet"))
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, 10*time.Second)
		expect(t, p, true, false, "")
		if members.calls < 35 {
			t.Errorf("%d calls in ten seconds, want four a second", members.calls)
		}
		members.set("primary", nil)
		pass(t, 300*time.Millisecond)
		expect(t, p, true, true, "primary")
	})
}

func TestWhatIsKnownStaysWithTheMemberAndGoesWithIt(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, time.Second)
		p.SetMembers(orders(), oneMember("a"), time.Now())
		expect(t, p, true, true, "primary")
		p.SetMembers(orders(), oneMember("b"), time.Now())
		expect(t, p, false, false, "")
		pass(t, time.Second)
		expect(t, p, true, true, "primary")
		if members.dials != 2 || members.open != 1 {
			t.Errorf("%d connections were made, %d are open; want 2 and 1", members.dials, members.open)
		}
		p.SetMembers(orders(), nil, time.Now())
		pass(t, time.Minute)
		if _, isKnown := p.Answer(orders(), "uid"); isKnown {
			t.Error("something is known of a member that is gone")
		}
	})
}

// TestWhatIsKnownIsOutdatedUntilACallThatBeganLaterHasEnded: one that was underway may
// tell of what was before.
func TestWhatIsKnownIsOutdatedUntilACallThatBeganLaterHasEnded(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, time.Second)
		if p.IsOutdated(orders()) {
			t.Error("it is outdated though nothing was done to it")
		}
		members.delay(300 * time.Millisecond)
		p.Hurry(orders(), "uid")
		pass(t, 100*time.Millisecond)
		p.Outdate(orders(), "uid", time.Now())
		pass(t, 250*time.Millisecond) // the call that was underway has ended
		if !p.IsOutdated(orders()) {
			t.Error("it counts what was asked before")
		}
		pass(t, 300*time.Millisecond)
		if p.IsOutdated(orders()) {
			t.Error("it is outdated though it was asked since")
		}
	})
}

func TestMembersThatAreSetBeforeTheProberRunsAreAskedOnceItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := &fakeMembers{state: "primary"}
		prober := NewProber(ProberConfig[string, string]{Dial: members.dial, CallLimit: time.Second, OnChange: func(cache.ObjectName) {}})
		prober.SetMembers(orders(), oneMember("a"), time.Now())
		expect(t, prober, false, false, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		prober.Run(ctx)
		expect(t, prober, true, true, "primary")
	})
}

func TestAMemberIsAskedAtOnceWhenItShouldAnswer(t *testing.T) {
	runProber(t, func(p *Prober[string, string], members *fakeMembers) {
		expected := oneMember("a")
		expected[0].IsExpected = true
		members.set("", errors.New("not yet"))
		p.SetMembers(orders(), oneMember("a"), time.Now())
		pass(t, eagerness+time.Second) // it is asked every two seconds from now on
		members.set("primary", nil)
		calls, now := members.count(), time.Now()
		p.SetMembers(orders(), expected, now)
		pass(t, 100*time.Millisecond)
		expect(t, p, true, true, "primary")
		if answer, _ := p.Answer(orders(), "uid"); members.count() != calls+1 || !answer.ExpectedSince.Equal(now) {
			t.Errorf("%d calls, expected since %s; want one more than %d, %s", members.count(), answer.ExpectedSince, calls, now)
		}
		pass(t, time.Minute)
		p.SetMembers(orders(), expected, time.Now())
		if answer, _ := p.Answer(orders(), "uid"); !answer.ExpectedSince.Equal(now) {
			t.Errorf("it is expected since %s, want %s", answer.ExpectedSince, now)
		}
		p.SetMembers(orders(), oneMember("a"), time.Now())
		if answer, _ := p.Answer(orders(), "uid"); !answer.ExpectedSince.IsZero() || !answer.IsAsked {
			t.Errorf("known is %+v of one that isn't expected to answer any more", answer)
		}
	})
}
