//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"coolops.cn/database-manager/test/e2e/audit"
)

// TestB7LeaderLoss has two operators, of which one works, and takes that one away:
// how long it is until the other has written something that users see.
func TestB7LeaderLoss(t *testing.T) {
	for round := 1; round <= env.sizes.rounds; round++ {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			t.Run(fmt.Sprintf("round %d, %s", round, signal), func(t *testing.T) { loseLeader(t, signal, round) })
		}
	}
}

func loseLeader(t *testing.T, signal syscall.Signal, round int) {
	namespace := newNamespace(t)
	leader := theOperator("leader", "--namespaces="+namespace).start(t)
	subjects := map[string]*fleet{
		ours:    newFleet(t, databases{engine: engines()[0], members: 1}, namespace),
		ourFoos: newFleet(t, foos{}, namespace),
	}
	first, second := map[string]string{ours: "first-db", ourFoos: "first-foo"}, map[string]string{ours: "second-db", ourFoos: "second-foo"}
	for subject, fleet := range subjects {
		fleet.make(t, []string{first[subject]})
		fleet.awaitDone(t, boundFor(1))
	}
	standby := theOperator("standby", "--namespaces="+namespace).start(t)
	awaitWatches(t, standby)
	sent := standby.sent()

	taken := time.Now()
	if err := leader.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	for subject, fleet := range subjects {
		fleet.make(t, []string{second[subject]})
	}
	for subject, fleet := range subjects {
		fleet.awaitDone(t, boundFor(1))
		written, err := firstWrite(standby.requests(sent), second[subject], namespace)
		if err != nil {
			t.Fatal(err)
		}
		record(t, result{
			Benchmark: "B7", Subject: subject, Case: "leader ended by " + nameOf(signal), Size: 1, Round: round,
			Values: map[string]float64{"first useful write after s": written.Sub(taken).Seconds()},
		})
	}
	<-leader.ended
	standby.end(t, syscall.SIGTERM)
}

// firstWrite is when the first write for a resource was asked for.
func firstWrite(entries []audit.Entry, name, namespace string) (time.Time, error) {
	for _, entry := range about(entries, name, namespace) {
		if entry.IsWrite() && !isEvent(entry) {
			return entry.RequestReceivedTimestamp.Time, nil
		}
	}
	return time.Time{}, errors.New("the other operator has written nothing for " + name)
}

func nameOf(signal syscall.Signal) string {
	return map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM"}[signal]
}
