//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"coolops.cn/database-manager/internal/app"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// patience is how long the operator may take for what takes it a moment.
const patience = time.Minute

// operator is an operator that runs in this process, on the cluster under test.
type operator struct {
	requests *requestLog
	stop     func()
}

// startOperator runs the operator, as its binary does, until the test ends or
// stop is called. Each of the hooks is called before a request is sent.
func startOperator(t *testing.T, hooks ...func(*http.Request)) operator {
	t.Helper()
	return startOperatorThrough(t, nil, hooks...)
}

// startOperatorThrough is startOperator with something between the operator and
// the API server.
func startOperatorThrough(t *testing.T, fault func(http.RoundTripper) http.RoundTripper, hooks ...func(*http.Request)) operator {
	t.Helper()
	return startOperatorWith(t, app.Defaults{}, fault, hooks...)
}

// startOperatorWith is startOperatorThrough with flags about new databases.
func startOperatorWith(t *testing.T, defaults app.Defaults, fault func(http.RoundTripper) http.RoundTripper, hooks ...func(*http.Request)) operator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	requests := &requestLog{arrived: make(chan struct{}, 1)}
	config := rest.CopyConfig(env.config)
	if fault != nil {
		config.Wrap(fault)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return loggingTransport{next, requests, hooks} })
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Cluster: config, Workers: 4, MetricsAddress: "0", HealthAddress: "0", Defaults: defaults})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return operator{requests: requests, stop: stop}
}

// requestLog holds the requests that the operator sent.
type requestLog struct {
	mu      sync.Mutex
	lines   []string
	arrived chan struct{}
}

func (l *requestLog) add(request *http.Request) {
	l.mu.Lock()
	l.lines = append(l.lines, request.Method+" "+request.URL.RequestURI())
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// about returns the requests that name the namespace; writes only, if asked for.
func (l *requestLog) about(namespace string, isWrite bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, "/namespaces/"+namespace+"/") && (!isWrite || !strings.HasPrefix(line, http.MethodGet)) {
			found = append(found, line)
		}
	}
	return found
}

// awaitQuiet waits until no request came for as long as quiet.
func (l *requestLog) awaitQuiet(t *testing.T, quiet time.Duration) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case <-l.arrived:
		case <-time.After(quiet):
			return
		case <-limit:
			t.Fatalf("the operator doesn't come to rest: %s", strings.Join(l.lines, "\n"))
		}
	}
}

type loggingTransport struct {
	next  http.RoundTripper
	log   *requestLog
	hooks []func(*http.Request)
}

func (t loggingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for _, hook := range t.hooks {
		hook(request)
	}
	t.log.add(request)
	return t.next.RoundTrip(request)
}

// await fails the test if check goes on failing.
func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	awaitWithin(t, patience, what, check)
}

// awaitWithin is await for what others take longer for.
func awaitWithin(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// newDatabase creates a redis, changed by the options.
func newDatabase(t *testing.T, namespace, name, stem string, options ...func(*v1alpha1.DatabaseManagerSpec)) *v1alpha1.DatabaseManager {
	t.Helper()
	database := &v1alpha1.DatabaseManager{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: stem, DBType: v1alpha1.DatabaseTypeRedis},
	}
	for _, option := range options {
		option(&database.Spec)
	}
	created, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), database, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the database %s: %v", name, err)
	}
	return created
}

// changeSpec changes the spec of the database orders.
func changeSpec(t *testing.T, namespace string, change func(*v1alpha1.DatabaseManagerSpec)) {
	t.Helper()
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	await(t, "change the spec", func(ctx context.Context) error {
		database, err := databases.Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&database.Spec)
		_, err = databases.Update(ctx, database, metav1.UpdateOptions{})
		return err
	})
}

// awaitReady waits until the condition Ready has one of the reasons, for the
// current spec, and returns it.
func awaitReady(t *testing.T, namespace, name string, reasons ...string) metav1.Condition {
	t.Helper()
	var ready metav1.Condition
	await(t, fmt.Sprintf("Ready of %s with a reason of %v", name, reasons), func(ctx context.Context) error {
		database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil {
			return errors.New("there is no condition Ready yet")
		}
		ready = *condition
		if condition.ObservedGeneration != database.Generation || !slices.Contains(reasons, condition.Reason) {
			return fmt.Errorf("it is %s/%s: %s", condition.Status, condition.Reason, condition.Message)
		}
		return nil
	})
	return ready
}

// awaitUnscheduled waits until the operator has done all that it can where
// there is no node.
func awaitUnscheduled(t *testing.T, namespace, name string) {
	t.Helper()
	awaitReady(t, namespace, name, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonVolumePending)
}
