//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"coolops.cn/database-manager/test/e2e/audit"
)

// crowd is how many databases rest, and restTime for how long.
func crowd() (count int, restTime time.Duration) {
	if env.isFull {
		return 20, 5 * time.Minute
	}
	return 4, 20 * time.Second
}

// TestDatabasesThatAreReadyCostNothing leaves databases alone, and counts what
// the operator asks for meanwhile; then it restarts the operator, which touches
// none of them. It runs beside no other test: the operator has nothing else to do.
func TestDatabasesThatAreReadyCostNothing(t *testing.T) {
	namespace := newNamespace(t)
	count, restTime := crowd()
	createCrowd(t, namespace, count)
	before, rest := allVersions(t, namespace), time.Now()
	<-time.After(restTime)
	for _, entry := range operatorRequests(t, rest) {
		// What an earlier test has left may still be on its way out.
		isOthers := entry.ObjectRef.Namespace != "" && entry.ObjectRef.Namespace != namespace
		if entry.ObjectRef.Resource != "leases" && entry.Verb != "watch" && !isOthers {
			t.Errorf("at rest the operator sent %s", entry)
		}
	}
	expectVersions(t, namespace, before, "at rest")

	restarted := time.Now()
	restartOperator(t)
	expectUntouched(t, namespace, before, restarted, "after a restart of the operator")
}

// expectUntouched waits until an operator that was started anew has served a new
// database, which it returns, and come to rest: by then it has looked at all that
// there were, and changed none.
func expectUntouched(t *testing.T, namespace string, before map[string]string, restarted time.Time, when string) database {
	t.Helper()
	other := database{engine: anyEngine(), namespace: newNamespace(t), name: "other"}
	other.create(t)
	other.waitReady(t)
	awaitCalm(t)
	for _, entry := range operatorRequests(t, restarted) {
		if entry.IsWrite() && entry.ObjectRef.Namespace == namespace {
			t.Errorf("%s the operator wrote %s", when, entry)
		}
	}
	expectVersions(t, namespace, before, when)
	return other
}

// createCrowd creates databases, every other one with storage, one with three members,
// and waits until all are ready and the operator is at rest.
func createCrowd(t *testing.T, namespace string, count int) []database {
	t.Helper()
	begun := time.Now()
	var databases []database
	for i := range count {
		d := database{engine: anyEngine(), namespace: namespace, name: fmt.Sprintf("resting-%d", i)}
		switch {
		case i == 2:
			d.create(t, replicated(3, ""))
		case i%2 == 0:
			d.create(t, durable)
		default:
			d.create(t)
		}
		databases = append(databases, d)
	}
	for _, d := range databases {
		d.waitReady(t)
	}
	record(t, fmt.Sprintf("apply to ready of %d databases at once", count), time.Since(begun))
	awaitCalm(t)
	return databases
}

// operatorRequests are the operator's requests since a moment.
func operatorRequests(t *testing.T, since time.Time) []audit.Entry {
	t.Helper()
	return requestsOf(t, audit.Operator, since)
}

// requestsOf are a user's requests since a moment.
func requestsOf(t *testing.T, username string, since time.Time) []audit.Entry {
	t.Helper()
	entries, err := audit.Read(env.auditLog, username)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(entries, func(entry audit.Entry) bool {
		return entry.RequestReceivedTimestamp.Time.Before(since)
	})
}

// awaitCalm waits until the operator has sent nothing for a while but what keeps
// its lease and its watches.
func awaitCalm(t *testing.T) {
	t.Helper()
	const calm = 5 * time.Second
	eventually(t, patience, "the operator at rest", func(context.Context) error {
		for _, entry := range operatorRequests(t, time.Now().Add(-calm)) {
			if entry.ObjectRef.Resource != "leases" && entry.Verb != "watch" {
				return fmt.Errorf("it sent %s", entry)
			}
		}
		return nil
	})
}

// allVersions returns the identity and the version of every object of a
// namespace that has to do with databases, the databases included. Of pods, whose
// status is the kubelet's, it is the generation alone.
func allVersions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	core, apps := env.kube.CoreV1(), env.kube.AppsV1()
	for kind, list := range map[string]func() (runtime.Object, error){
		"DatabaseManager": func() (runtime.Object, error) {
			return env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"Pod": func() (runtime.Object, error) { return core.Pods(namespace).List(t.Context(), metav1.ListOptions{}) },
		"Service": func() (runtime.Object, error) {
			return core.Services(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"Secret": func() (runtime.Object, error) { return core.Secrets(namespace).List(t.Context(), metav1.ListOptions{}) },
		"ConfigMap": func() (runtime.Object, error) {
			return core.ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"NetworkPolicy": func() (runtime.Object, error) {
			return env.kube.NetworkingV1().NetworkPolicies(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"Claim": func() (runtime.Object, error) {
			return core.PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"Deployment": func() (runtime.Object, error) {
			return apps.Deployments(namespace).List(t.Context(), metav1.ListOptions{})
		},
		"StatefulSet": func() (runtime.Object, error) {
			return apps.StatefulSets(namespace).List(t.Context(), metav1.ListOptions{})
		},
	} {
		listed, err := list()
		if err != nil {
			t.Fatalf("list %ss: %v", kind, err)
		}
		err = meta.EachListItem(listed, func(item runtime.Object) error {
			accessor, err := meta.Accessor(item)
			if err != nil {
				return err
			}
			version := accessor.GetResourceVersion()
			if kind == "Pod" {
				version = "of no matter"
			}
			versions[kind+" "+accessor.GetName()] = fmt.Sprintf("%s, version %s, generation %d", accessor.GetUID(), version, accessor.GetGeneration())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, hasPods := versions["Pod resting-0-db-0"]; !hasPods {
		t.Fatalf("there is no pod to look at: %v", slices.Sorted(maps.Keys(versions)))
	}
	return versions
}

func expectVersions(t *testing.T, namespace string, before map[string]string, when string) {
	t.Helper()
	after := allVersions(t, namespace)
	for name, version := range before {
		// A namespace's own ConfigMap with the cluster's certificate is others'.
		if after[name] != version && !strings.HasSuffix(name, " kube-root-ca.crt") {
			t.Errorf("%s %s is %q, and was %q", when, name, after[name], version)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s there are %d objects, and were %d", when, len(after), len(before))
	}
}
