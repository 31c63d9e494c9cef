//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// leaseDuration is the operator's.
	leaseDuration = 15 * time.Second
	// workers is how many syncs an operator runs at once in these tests.
	workers = 4
)

// fleet is several operators, of which one works.
type fleet struct {
	namespace string
	operators []*operator
	made      int
}

// newFleet starts three operators and waits until one of them leads.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{namespace: newNamespace(t)}
	for range 3 {
		f.operators = append(f.operators, startOperator(t, nil,
			"--namespaces="+f.namespace, "--leader-elect-namespace="+f.namespace, "--workers="+strconv.Itoa(workers)))
	}
	f.awaitWork(t, 20*time.Second, time.Now())
	return f
}

// awaitWork makes a database every 100 ms until an operator has written for one
// of them after since, and returns that operator and how long it took.
func (f *fleet) awaitWork(t *testing.T, bound time.Duration, since time.Time, except ...*operator) (*operator, time.Duration) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(bound)
	for {
		f.makeDatabase(t)
		for _, candidate := range f.operators {
			isExcepted := false
			for _, excepted := range except {
				isExcepted = isExcepted || excepted == candidate
			}
			if isExcepted {
				continue
			}
			work := candidate.seen(func(r request) bool { return r.isWork() && r.at.After(since) })
			if len(work) > 0 {
				return candidate, work[0].at.Sub(since)
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no operator works within %s", bound)
		case <-ticker.C:
		}
	}
}

func (f *fleet) makeDatabase(t *testing.T) {
	t.Helper()
	f.made++
	name := fmt.Sprintf("db-%d", f.made)
	_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(f.namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: name, DBType: v1alpha1.DatabaseTypeRedis},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// leader returns the operator that works now.
func (f *fleet) leader(t *testing.T) *operator {
	t.Helper()
	leader, _ := f.awaitWork(t, 20*time.Second, time.Now())
	return leader
}

// checkNobodyWorkedBeside fails the test if two operators wrote in the same time.
func (f *fleet) checkNobodyWorkedBeside(t *testing.T, former, successor *operator) {
	t.Helper()
	done := func(r request) bool { return r.isWork() && r.status < http.StatusBadRequest && r.status != 0 }
	var before, after []request
	eventually(t, 10*time.Second, "work that both have done", func(context.Context) error {
		before, after = former.seen(done), successor.seen(done)
		if len(before) == 0 || len(after) == 0 {
			return fmt.Errorf("%d writes of the one, %d of the other", len(before), len(after))
		}
		return nil
	})
	if last, first := before[len(before)-1], after[0]; last.at.After(first.at) {
		t.Errorf("the former leader wrote %s, %s after its successor had begun", last, last.at.Sub(first.at))
	}
}

func TestALeaderThatIsKilledIsFollowedWithinTheLeaseAndTwoSeconds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	former := f.leader(t)
	killed := time.Now()
	former.signal(t, syscall.SIGKILL)
	successor, took := f.awaitWork(t, leaseDuration+10*time.Second, killed, former)
	t.Logf("another operator works %s after the leader was killed", took.Round(time.Millisecond))
	if took > leaseDuration+2*time.Second {
		t.Errorf("it took %s", took)
	}
	f.checkNobodyWorkedBeside(t, former, successor)
}

func TestALeaderThatIsAskedToStopIsFollowedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	former := f.leader(t)
	asked := time.Now()
	former.signal(t, syscall.SIGTERM)
	successor, took := f.awaitWork(t, 10*time.Second, asked, former)
	t.Logf("another operator works %s after the leader was asked to stop", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	former.awaitEnd(t, 10*time.Second)
	if former.err != nil {
		t.Errorf("the leader ended with %v", former.err)
	}
	f.checkNobodyWorkedBeside(t, former, successor)
	f.checkLastSyncEndedBeforeRelease(t, former)
}

// checkLastSyncEndedBeforeRelease looks for work after the update that emptied
// the lease, which is the last one about it.
func (f *fleet) checkLastSyncEndedBeforeRelease(t *testing.T, former *operator) {
	t.Helper()
	writes := former.seen(request.isWrite)
	if last := writes[len(writes)-1]; !last.isLease() {
		t.Errorf("the former leader's last write is %s, want the one that gives up the lease", last)
	}
}

func TestALeaderThatWasStoppedForAWhileStartsNothingNew(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	former := f.leader(t)
	stopped := time.Now()
	former.signal(t, syscall.SIGSTOP)
	successor, took := f.awaitWork(t, leaseDuration+10*time.Second, stopped, former)
	t.Logf("another operator works %s after the leader was stopped", took.Round(time.Millisecond))
	f.makeDatabase(t)
	continued := time.Now()
	former.signal(t, syscall.SIGCONT)
	former.awaitEnd(t, 15*time.Second)
	late := former.seen(func(r request) bool { return r.isWork() && r.at.After(continued) })
	if len(late) > workers {
		t.Errorf("the former leader sent %d writes after it was continued, want %d at most: %v", len(late), workers, late)
	}
	if former.err == nil {
		t.Error("the former leader ended as if all was well")
	}
	if successor.hasEnded() {
		t.Errorf("the new leader ended: %v", successor.err)
	}
	eventually(t, 10*time.Second, "one holder", func(ctx context.Context) error {
		lease, err := f.lease(ctx)
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
			err = errors.New("nobody holds the lease")
		}
		return err
	})
}

func (f *fleet) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	return env.kube.CoordinationV1().Leases(f.namespace).Get(ctx, "database-manager", metav1.GetOptions{})
}
