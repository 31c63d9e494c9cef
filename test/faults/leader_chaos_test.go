//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// crowdFoos and crowdDatabases are what leaders are led to serve.
	crowdFoos, crowdDatabases = 250, 50
	// editTime is how often one of them is changed.
	editTime = 50 * time.Millisecond
	// crowdBound is within what time all of them are as they are to be.
	crowdBound = 3 * time.Minute
)

// crowd is many resources that are changed all the time, and the operators that
// serve them, of which one works.
type crowd struct {
	namespace string
	random    *rand.Rand
	// operators are all that there were. Each leads once at most: one that has lost its
	// lease ends, and another one is started.
	operators []*operator
	// continued is when an operator that was stopped went on; by operator.
	continued map[*operator]time.Time

	mu sync.Mutex
	// isGone is true while there is no such kind of resource.
	isGone bool
	// edits is how often each resource was changed.
	edits []int
}

// TestLeadersComeAndGoWhileAllIsChanged kills, stops and ends leaders, restarts the API
// server and its store, and takes the resources' kinds away, while each resource is
// changed again and again. In the end all are as they are to be, and no two operators
// have worked at once. It runs beside no other test: it takes the cluster away.
func TestLeadersComeAndGoWhileAllIsChanged(t *testing.T) {
	c := &crowd{namespace: newNamespace(t), random: rand.New(rand.NewPCG(env.seed, 1)), continued: map[*operator]time.Time{}}
	for range 3 {
		c.startOperator(t)
	}
	c.make(t)
	c.awaitAll(t, "at first")
	for range env.disturbances {
		for _, i := range c.random.Perm(len(disturbances())) {
			one := disturbances()[i]
			stop := c.keepChanging(t)
			one.do(c, t)
			stop()
			c.awaitAll(t, "after "+one.name)
		}
	}
	c.checkTenures(t)
}

// disturbance happens to the operators, or to what they stand on, while resources
// are changed.
type disturbance struct {
	name string
	do   func(c *crowd, t *testing.T)
}

func disturbances() []disturbance {
	return []disturbance{
		{"the leader was killed", func(c *crowd, t *testing.T) { c.replaceLeader(t, syscall.SIGKILL, leaseDuration+2*time.Second) }},
		{"the leader was asked to end", func(c *crowd, t *testing.T) { c.replaceLeader(t, syscall.SIGTERM, 5*time.Second) }},
		{"the leader was stopped for a while", (*crowd).stopLeader},
		{"the API server and its store were killed", (*crowd).restartCluster},
		{"the kinds were deleted", (*crowd).deleteKinds},
	}
}

func (c *crowd) startOperator(t *testing.T) {
	t.Helper()
	c.operators = append(c.operators, startOperator(t, nil,
		"--namespaces="+c.namespace, "--leader-elect-namespace="+c.namespace, "--workers="+strconv.Itoa(workers)))
}

func nameInCrowd(i int) string { return fmt.Sprintf("crowd-%d", i) }

// make creates all resources.
func (c *crowd) make(t *testing.T) {
	t.Helper()
	c.edits = make([]int, crowdFoos+crowdDatabases)
	for i := range c.edits {
		if i < crowdFoos {
			makeFoo(t, c.namespace, nameInCrowd(i), 1)
			continue
		}
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(c.namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: nameInCrowd(i)},
			Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: nameInCrowd(i), DBType: v1alpha1.DatabaseTypeRedis},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("create a database: %v", err)
		}
	}
}

// keepChanging changes one resource after the other, until the function that it
// returns is called. A change that fails, since there is no API server for a while,
// wasn't made.
func (c *crowd) keepChanging(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	random := rand.New(rand.NewPCG(c.random.Uint64(), 2))
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(editTime)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				c.change(ctx, random.IntN(len(c.edits)))
			}
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

// change changes what a resource's pods are to be like.
func (c *crowd) change(ctx context.Context, i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isGone {
		return
	}
	next, name := c.edits[i]+1, nameInCrowd(i)
	var err error
	if i < crowdFoos {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicasAfter(next))
		_, err = env.resources.SamplecontrollerV1alpha1().Foos(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	} else {
		patch := fmt.Sprintf(`{"spec":{"service":{"annotations":{"example.com/edit":"%d"}}}}`, next)
		_, err = env.resources.CoolopsV1alpha1().DatabaseManagers(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if err == nil {
		c.edits[i] = next
	}
}

// replicasAfter is how many replicas a Foo has that was changed so often.
func replicasAfter(edits int) int32 { return int32(1 + edits%3) }

// awaitAll waits until each resource says that all is well with it, and its children
// are as they are to be. A change of which nobody knows whether it was made counts by
// what the resource says.
func (c *crowd) awaitAll(t *testing.T, when string) {
	t.Helper()
	eventually(t, crowdBound, when+" all resources", func(ctx context.Context) error {
		return errors.Join(c.foosMissing(ctx), c.databasesMissing(ctx))
	})
}

func (c *crowd) foosMissing(ctx context.Context) error {
	foos, err := env.resources.SamplecontrollerV1alpha1().Foos(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	deployments, err := env.kube.AppsV1().Deployments(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	replicas := map[string]int32{}
	for _, deployment := range deployments.Items {
		replicas[deployment.Name] = *deployment.Spec.Replicas
	}
	var missing int
	for _, foo := range foos.Items {
		if !saysWell(&foo) || replicas[foo.Name] != *foo.Spec.Replicas {
			missing++
		}
	}
	if len(foos.Items) != crowdFoos || missing > 0 || len(deployments.Items) != crowdFoos+crowdDatabases {
		return fmt.Errorf("%d Foos, of which %d aren't served, and %d Deployments", len(foos.Items), missing, len(deployments.Items))
	}
	return nil
}

func (c *crowd) databasesMissing(ctx context.Context) error {
	databases, err := env.resources.CoolopsV1alpha1().DatabaseManagers(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	services, err := env.kube.CoreV1().Services(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	byName := map[string]corev1.Service{}
	for _, service := range services.Items {
		byName[service.Name] = service
	}
	const edit = "example.com/edit"
	var missing int
	for _, database := range databases.Items {
		wanted := ""
		if database.Spec.Service != nil {
			wanted = string(database.Spec.Service.Annotations[edit])
		}
		if saysReady(&database) != nil || byName[database.Name].Annotations[edit] != wanted {
			missing++
		}
	}
	if len(databases.Items) != crowdDatabases || missing > 0 {
		return fmt.Errorf("%d databases, of which %d aren't served", len(databases.Items), missing)
	}
	return nil
}

// isDone tells whether a request changed something.
func isDone(r request) bool { return r.isWork() && r.status > 0 && r.status < http.StatusBadRequest }

// leader is the operator that wrote last.
func (c *crowd) leader(t *testing.T) *operator {
	t.Helper()
	return slices.MaxFunc(c.operators, func(a, b *operator) int { return lastWork(a).Compare(lastWork(b)) })
}

// lastWork is when an operator wrote last; zero if it never did.
func lastWork(o *operator) time.Time {
	if work := o.seen(isDone); len(work) > 0 {
		return work[len(work)-1].at
	}
	return time.Time{}
}

// awaitSuccessor waits until another operator than the former one has written, and
// notes how long that took.
func (c *crowd) awaitSuccessor(t *testing.T, former *operator, since time.Time, what string, bound time.Duration) {
	t.Helper()
	var first time.Time
	eventually(t, bound+10*time.Second, "another leader after "+what, func(context.Context) error {
		for _, one := range c.operators {
			work := one.seen(func(r request) bool { return isDone(r) && r.at.After(since) })
			if one != former && len(work) > 0 && (first.IsZero() || work[0].at.Before(first)) {
				first = work[0].at
			}
		}
		if first.IsZero() {
			return errors.New("nobody works")
		}
		return nil
	})
	took := first.Sub(since)
	env.tally.note("another leader's first write after %s, with %d resources: %.1f s", what, len(c.edits), took.Seconds())
	if took > bound {
		t.Errorf("after %s another leader wrote after %s, want %s at most", what, took.Round(time.Millisecond), bound)
	}
}

// replaceLeader sends a signal to the leader that ends it, and has another operator
// wait in its place.
func (c *crowd) replaceLeader(t *testing.T, signal syscall.Signal, bound time.Duration) {
	t.Helper()
	former, since := c.leader(t), time.Now()
	former.signal(t, signal)
	c.awaitSuccessor(t, former, since, signal.String(), bound)
	former.awaitEnd(t, 10*time.Second)
	c.startOperator(t)
}

// stopLeader stops the leader until another one has taken its place. It ends when it
// goes on.
func (c *crowd) stopLeader(t *testing.T) {
	t.Helper()
	former, since := c.leader(t), time.Now()
	former.signal(t, syscall.SIGSTOP)
	c.awaitSuccessor(t, former, since, "a stop", leaseDuration+2*time.Second)
	c.continued[former] = time.Now()
	former.signal(t, syscall.SIGCONT)
	former.awaitEnd(t, 15*time.Second)
	c.startOperator(t)
}

// restartCluster kills the API server with its store, which stay away for 3 s.
func (c *crowd) restartCluster(t *testing.T) {
	t.Helper()
	fields := strings.Fields(env.restart)
	if output, err := exec.CommandContext(t.Context(), fields[0], fields[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", env.restart, err, output)
	}
	c.replaceEnded(t)
}

// replaceEnded starts an operator for each that has given up its lease.
func (c *crowd) replaceEnded(t *testing.T) {
	t.Helper()
	running := 0
	for _, one := range c.operators {
		if !one.hasEnded() {
			running++
		}
	}
	for range 3 - running {
		c.startOperator(t)
	}
}

// deleteKinds deletes the CRDs, and with them all resources, and makes both again.
func (c *crowd) deleteKinds(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	c.isGone = true
	c.mu.Unlock()
	kinds := crds(t)
	client := crdClient(t)
	for _, kind := range kinds {
		if err := client.Delete(t.Context(), kind.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete the CRD %s: %v", kind.GetName(), err)
		}
	}
	eventually(t, crowdBound, "the CRDs, their resources, and what those owned are gone", func(ctx context.Context) error {
		for _, kind := range kinds {
			if _, err := client.Get(ctx, kind.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return cmp.Or(err, errors.New(kind.GetName()+" is still there"))
			}
		}
		deployments, err := env.kube.AppsV1().Deployments(c.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(deployments.Items) > 0 {
			err = fmt.Errorf("there are %d Deployments", len(deployments.Items))
		}
		return err
	})
	for _, kind := range kinds {
		if _, err := client.Create(t.Context(), kind, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create the CRD %s: %v", kind.GetName(), err)
		}
	}
	eventually(t, time.Minute, "the kinds are served", func(ctx context.Context) error {
		// Not only listed: the API server refuses to store the first ones for a while.
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(c.namespace).Create(ctx, &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: "dry"}, Spec: v1alpha1.DatabaseManagerSpec{DeploymentName: "dry", DBType: v1alpha1.DatabaseTypeRedis},
		}, dry)
		if err == nil {
			_, err = env.resources.SamplecontrollerV1alpha1().Foos(c.namespace).List(ctx, metav1.ListOptions{})
		}
		return err
	})
	c.replaceEnded(t)
	c.make(t)
	c.mu.Lock()
	c.isGone = false
	c.mu.Unlock()
}

// crds are those of config/crds.yaml.
func crds(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("../../config/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			all = append(all, object)
		}
	}
	if len(all) == 0 {
		t.Fatal("config/crds.yaml has no CRD")
	}
	return all
}

func crdClient(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(env.config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// tenure is the time from an operator's first write to its last one.
type tenure struct{ from, to time.Time }

// checkTenures fails the test if two operators worked at once. What an operator had
// sent before it was stopped comes when it goes on: one write of each worker at most.
func (c *crowd) checkTenures(t *testing.T) {
	t.Helper()
	var all []tenure
	for _, one := range c.operators {
		work := one.seen(isDone)
		if continued, wasStopped := c.continued[one]; wasStopped {
			before := slices.DeleteFunc(slices.Clone(work), func(r request) bool { return r.at.After(continued) })
			if late := len(work) - len(before); late > workers {
				t.Errorf("a leader that was stopped wrote %d times when it went on", late)
			}
			work = before
		}
		if len(work) > 0 {
			all = append(all, tenure{work[0].at, work[len(work)-1].at})
		}
	}
	slices.SortFunc(all, func(a, b tenure) int { return a.from.Compare(b.from) })
	for i := 1; i < len(all); i++ {
		if before := all[i-1]; all[i].from.Before(before.to) {
			t.Errorf("an operator wrote %s after its successor had begun", before.to.Sub(all[i].from))
		}
	}
	if len(all) < 4 {
		t.Errorf("only %d operators have led", len(all))
	}
}
