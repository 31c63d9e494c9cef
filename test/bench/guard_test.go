//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/test/e2e/audit"
)

const (
	// guardRest is how long nothing may be asked for.
	guardRest = 10 * time.Second
	// maxChangeBytes bounds what the operator sends and receives, TLS and all, for a
	// change of one annotation of a Service; maxFooChangeBytes for one more pod of a Foo.
	maxChangeBytes    = 25_000
	maxFooChangeBytes = 35_000
)

// TestGuard compares counts, which don't depend on the machine, with what they were
// designed to be: requests for each kind of database and a Foo, requests at rest,
// writes at a restart, and bytes for a change.
func TestGuard(t *testing.T) {
	namespace := newNamespace(t)
	program := theOperator("guard", "--namespaces="+namespace)
	operator := program.start(t)
	operator.awaitLead(t)
	fleets := map[string]*fleet{}
	for _, kind := range databaseKinds() {
		name := kind.stem()
		fleets[name] = newFleet(t, kind, namespace)
		fleets[name].make(t, []string{name})
	}
	fleets["foo"] = newFleet(t, foos{}, namespace)
	fleets["foo"].make(t, []string{"foo"})
	took := map[string]time.Duration{}
	for name, fleet := range fleets {
		took[name] = fleet.awaitDone(t, boundFor(1))[0]
	}
	operator.awaitCalm(t, boundFor(1))
	created := operator.requests(0)
	for name, fleet := range fleets {
		checkCreation(t, name, fleet, about(created, name, namespace), took[name])
	}

	sent := operator.sent()
	<-time.After(guardRest)
	for _, entry := range operator.requests(sent) {
		if !isAtRest(entry) {
			t.Errorf("at rest the operator sent %s", entry)
		}
	}

	guardChanges(t, operator, fleets)
	operator.end(t, syscall.SIGTERM)
	sent = env.audit.Count(operator.user)
	restarted := program.start(t)
	restarted.awaitCalm(t, boundFor(1))
	for _, entry := range restarted.requests(sent) {
		if entry.IsWrite() && !isLease(entry) {
			t.Errorf("a restart wrote %s", entry)
		}
	}
	if restarted.sent() == sent {
		t.Error("not even the watches of the restarted operator are in the audit log: nothing was counted")
	}
}

// about are the requests for one resource and what it consists of, each of which
// has the resource's name in its own.
func about(entries []audit.Entry, name, namespace string) []audit.Entry {
	var found []audit.Entry
	for _, entry := range entries {
		own := entry.ObjectRef.Name
		if entry.ObjectRef.Namespace == namespace && (own == name || strings.Contains(own, name+"-") || strings.Contains(own, "-"+name) || strings.HasPrefix(own, name+".")) {
			found = append(found, entry)
		}
	}
	return found
}

// checkCreation compares the requests for one resource with design.md's formula, and
// with how much more it takes. On a machine that is slow each second of its way may be
// told, and more isn't: that is no more than the design.
func checkCreation(t *testing.T, name string, fleet *fleet, entries []audit.Entry, took time.Duration) {
	t.Helper()
	counted := count(entries)
	writes, reads := 3, 0    // of a Foo: the Deployment, and its status twice
	more := excess{reads: 1} // whether it is still there, before the Deployment is made
	if kind, isDatabase := fleet.kind.(databases); isDatabase {
		writes, reads = kind.formula(childrenOf(t, fleet.namespace, name))
		more = kind.excess()
		told := counted.by["patch databasemanagers/status"] - status
		more.writes += max(0, min(told, int(took/time.Second)))
	}
	t.Logf("%s: %d writes of %d, %d reads of %d, %d events: %v", name, counted.writes, writes, counted.reads, reads, counted.events, counted.by)
	if counted.writes > writes+more.writes || counted.reads > reads+more.reads {
		t.Errorf("%s took %d writes and %d reads, want %d and %d, or %+v more at most: %v", name, counted.writes, counted.reads, writes, reads, more, counted.by)
	}
	if counted.writes == 0 {
		t.Errorf("no write for %s was counted", name)
	}
}

// excess is how many more requests than by the formula are let pass.
type excess struct{ writes, reads int }

// excess is what was seen at most when this was written, and a little for what comes
// in another order at another time. Who makes it less makes this less.
func (d databases) excess() excess {
	switch {
	case d.members > 1:
		return excess{8, 18}
	case d.isDurable:
		return excess{2, 5}
	default:
		return excess{1, 3}
	}
}

// status is how often a status is written on the way: at first, and when all is well.
const status = 2

// formula is how many requests the making of one database is to take, from the
// number of its children.
func (d databases) formula(children int) (writes, reads int) {
	const label = 1
	members := int(d.members)
	topology, mark, scale := 1, 0, 0
	if members > 1 {
		topology, scale = 3, 1
	}
	if d.isDurable {
		mark, reads = 1, members // each claim's name is looked at before it is used
	}
	return children + status + topology + members*(label+mark) + scale, reads
}

// childrenOf is how many objects a database consists of, without what its workload
// makes.
func childrenOf(t *testing.T, namespace, stem string) int {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelStem: stem}.String()}
	sum := 0
	add := func(number int, err error) {
		if err != nil {
			t.Fatalf("count the children of %s: %v", stem, err)
		}
		sum += number
	}
	ctx, core, apps := t.Context(), env.kube.CoreV1(), env.kube.AppsV1()
	services, err := core.Services(namespace).List(ctx, options)
	add(len(services.Items), err)
	secrets, err := core.Secrets(namespace).List(ctx, options)
	add(len(secrets.Items), err)
	configMaps, err := core.ConfigMaps(namespace).List(ctx, options)
	add(len(configMaps.Items), err)
	budgets, err := env.kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, options)
	add(len(budgets.Items), err)
	policies, err := env.kube.NetworkingV1().NetworkPolicies(namespace).List(ctx, options)
	add(len(policies.Items), err)
	deployments, err := apps.Deployments(namespace).List(ctx, options)
	add(len(deployments.Items), err)
	sets, err := apps.StatefulSets(namespace).List(ctx, options)
	add(len(sets.Items), err)
	return sum
}

// guardChanges bounds the bytes of a change.
func guardChanges(t *testing.T, operator *process, fleets map[string]*fleet) {
	t.Helper()
	stem := databaseKinds()[0].stem()
	for name, row := range map[string]struct {
		patch string
		bytes int64
	}{
		stem:  {changeOfService(1), maxChangeBytes},
		"foo": {`{"spec":{"replicas":2}}`, maxFooChangeBytes},
	} {
		before := operator.toServer.Load() + operator.fromServer.Load()
		fleets[name].change(t, []string{name}, row.patch)
		fleets[name].awaitDone(t, boundFor(1))
		operator.awaitCalm(t, boundFor(1))
		bytes := operator.toServer.Load() + operator.fromServer.Load() - before
		t.Logf("a change of %s took %d bytes", name, bytes)
		if bytes == 0 || bytes > row.bytes {
			t.Errorf("a change of %s took %d bytes, want some, and %d at most", name, bytes, row.bytes)
		}
	}
}

// changeOfService is a change that one object has to be patched for, and no pod.
func changeOfService(number int) string {
	return fmt.Sprintf(`{"spec":{"service":{"annotations":{"example.com/change":"%d"}}}}`, number)
}
