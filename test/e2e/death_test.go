//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
	"coolops.cn/database-manager/test/e2e/audit"
)

// deaths are after how many writes for a database the operator is killed. Package
// faults does it around each write, with servers that are played.
func deaths() []int {
	if env.isFull {
		return []int{1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30}
	}
	return []int{14}
}

// TestAnOperatorMayDieAfterItsWrites kills all operators just after one has written,
// while a database of three members comes into being on real nodes. It is to be the
// same as if nothing had happened. It runs beside no other test.
func TestAnOperatorMayDieAfterItsWrites(t *testing.T) {
	for _, e := range enginesOnce() {
		calm := beginReplicated(t, e, 3, v1alpha1.ReplicationModeSync)
		want, err := calm.children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, writes := range deaths() {
			t.Run(fmt.Sprintf("%s, write %d", e.name, writes), func(t *testing.T) {
				l := calm.madeAcrossADeath(t, writes)
				got, err := l.children(t.Context())
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("the children are %v, want %v: %v", got, want, err)
				}
				l.app.writeMany(t)
				for _, member := range l.membersUpTo(3) {
					l.expectMany(t, fmt.Sprintf("%s.%s-members", member, l.stem()))
				}
			})
		}
	}
}

// madeAcrossADeath makes a database like l, and kills the operators after so many
// writes for it.
func (l life) madeAcrossADeath(t *testing.T, writes int) life {
	t.Helper()
	log, err := os.Stat(env.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	made := life{database: database{engine: l.engine, namespace: namespace, name: "orders"}, app: newClient(t, namespace, l.engine)}
	begun := time.Now()
	made.create(t, replicated(3, v1alpha1.ReplicationModeSync))
	made.awaitWrites(t, writes, log.Size())
	killOperators(t)
	made.app.login(t, made.credentials(t))
	made.waitWhole(t, 3)
	record(t, fmt.Sprintf("apply to 3 members of %s, with the operator killed after %d writes", l.engine.name, writes), time.Since(begun))
	return made
}

// awaitWrites waits until the operator has written so often for the database since the
// audit log had a size; it looks often, for what is just after the last of them passes
// soon.
func (d database) awaitWrites(t *testing.T, writes int, size int64) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-ticker.C {
		entries, err := audit.ReadFrom(env.auditLog, audit.Operator, size)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for _, entry := range entries {
			if entry.ObjectRef.Namespace == d.namespace && entry.IsWrite() {
				done++
			}
		}
		if done >= writes {
			return
		}
	}
	t.Fatalf("there aren't %d writes within %s", writes, patience)
}
