//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

const (
	// restingObjects is how many Foos, and how many databases, there are.
	restingObjects = 20
	// restTime is how long nothing may happen.
	restTime = 2 * time.Minute
)

// TestAtRestThereIsNoRequest counts the operator's requests in the audit log,
// with Foos and databases that need nothing, and restarts it with them.
func TestAtRestThereIsNoRequest(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	flags := []string{"--namespaces=" + namespace, "--leader-elect-namespace=" + namespace}
	first := startOperator(t, nil, flags...)
	makeResting(t, namespace)
	awaitRest(t, first, namespace)

	begun := time.Now()
	<-time.After(restTime)
	for _, entry := range auditSince(t, begun, first.name()) {
		if !entry.isLease() && entry.Verb != "watch" {
			t.Errorf("at rest the operator sent %s", entry)
		}
	}
	if renewals := auditSince(t, begun, first.name()); len(renewals) == 0 {
		t.Error("not even the renewals of the lease are in the audit log: nothing was counted")
	}

	first.signal(t, syscall.SIGTERM)
	first.awaitEnd(t, 10*time.Second)
	begun = time.Now()
	second := startOperator(t, nil, flags...)
	awaitRest(t, second, namespace)
	// One more thing to do shows that all of it has been looked at.
	createFoo(t, namespace)
	eventually(t, 10*time.Second, "a new Foo", func(ctx context.Context) error { return hasReplicas(2)(ctx, namespace) })
	for _, entry := range auditSince(t, begun, second.name()) {
		if entry.isWrite() && !entry.isLease() && !entry.isAbout("example-foo") {
			t.Errorf("a restart wrote %s", entry)
		}
	}
}

func makeResting(t *testing.T, namespace string) {
	t.Helper()
	for i := range restingObjects {
		name := fmt.Sprintf("resting-%d", i)
		makeFoo(t, namespace, name, 1)
		_, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).Create(t.Context(), &v1alpha1.DatabaseManager{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.DatabaseManagerSpec{DeploymentName: name + "-db", DBType: v1alpha1.DatabaseTypeRedis},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// awaitRest waits until every object has its status and the operator has sent
// nothing for a while but what keeps the lease.
func awaitRest(t *testing.T, o *operator, namespace string) {
	t.Helper()
	const calm = 3 * time.Second
	eventually(t, 90*time.Second, "rest", func(ctx context.Context) error {
		databases, err := env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, database := range databases.Items {
			if len(database.Status.Conditions) == 0 {
				return fmt.Errorf("%s has no status yet", database.Name)
			}
		}
		requests := o.seen(func(r request) bool { return !r.isLease() })
		if len(requests) == 0 || time.Since(requests[len(requests)-1].at) < calm {
			return errors.New("the operator isn't at rest")
		}
		return nil
	})
}

// auditEntry is a request as the API server noted it.
type auditEntry struct {
	Verb                     string           `json:"verb"`
	Stage                    string           `json:"stage"`
	RequestURI               string           `json:"requestURI"`
	UserAgent                string           `json:"userAgent"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
}

func (e auditEntry) String() string { return e.Verb + " " + e.RequestURI }

func (e auditEntry) isLease() bool { return strings.Contains(e.RequestURI, "/leases") }

func (e auditEntry) isWrite() bool {
	return e.Verb != "get" && e.Verb != "list" && e.Verb != "watch"
}

// isAbout tells whether the request is about an object of that name, by its
// address. An event, and what is created, doesn't show its name there.
func (e auditEntry) isAbout(name string) bool {
	return strings.Contains(e.RequestURI, "/"+name) || e.Verb == "create"
}

// auditSince returns what an operator asked for since a moment.
func auditSince(t *testing.T, since time.Time, name string) []auditEntry {
	t.Helper()
	file, err := os.Open(env.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var found []auditEntry
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), name) {
			continue
		}
		var entry auditEntry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			continue // the last line may be half written
		}
		if strings.HasSuffix(entry.UserAgent, " "+name) && entry.RequestReceivedTimestamp.After(since) && entry.Stage != "ResponseStarted" {
			found = append(found, entry)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
