//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
)

// TestB1AndB6Lives leads resources of each kind through a life, one kind after the
// other, and counts what each part of it takes: requests (B1) and bytes (B6).
func TestB1AndB6Lives(t *testing.T) {
	for _, kind := range databaseKinds() {
		t.Run(kind.stem(), func(t *testing.T) {
			l := newLife(t, kind, ours, kind.String(), kind.stem())
			expected, reads := 0, 0
			l.part("create", func() { l.fleet.make(t, l.names) }, func(values map[string]float64) {
				expected, reads = kind.formula(childrenOf(t, l.fleet.namespace, l.names[0]))
				values["writes expected"], values["reads expected"] = float64(expected), float64(reads)
			})
			if kind.isDurable {
				l.part("scale out", func() {
					l.fleet.change(t, l.names, fmt.Sprintf(`{"spec":{"replicas":%d}}`, kind.members+1))
				}, nil)
			}
			l.part("change", func() { l.fleet.change(t, l.names, changeOfService(1)) }, nil)
			l.part("delete", func() { l.fleet.delete(t, l.names, boundFor(len(l.names))) }, nil)
		})
	}
	t.Run("foo", func(t *testing.T) {
		l := newLife(t, foos{}, ourFoos, "Foo", "foo")
		l.part("create", func() { l.fleet.make(t, l.names) }, func(values map[string]float64) { values["writes expected"] = 3 })
		l.part("scale out", func() { l.fleet.change(t, l.names, `{"spec":{"replicas":2}}`) }, nil)
		l.part("delete", func() { l.fleet.delete(t, l.names, boundFor(len(l.names))) }, nil)
	})
}

// life is that of several resources of a kind, and of an operator that sees no
// others.
type life struct {
	t        *testing.T
	operator *process
	fleet    *fleet
	names    []string
	subject  string
	what     string
}

func newLife(t *testing.T, kind kind, subject, what, stem string) *life {
	t.Helper()
	namespace := newNamespace(t)
	l := &life{t: t, names: names(stem, 0, env.sizes.lives), subject: subject, what: what}
	l.operator = theOperator("life", "--namespaces="+namespace).start(t)
	l.fleet = newFleet(t, kind, namespace)
	l.operator.awaitLead(t)
	return l
}

// part does something with all resources, waits until there is nothing more to do,
// and records what that took for each of them.
func (l *life) part(name string, do func(), more func(map[string]float64)) {
	l.t.Helper()
	sent, puts := l.operator.sent(), etcdPuts(l.t)
	toServer, fromServer, cpu := l.operator.toServer.Load(), l.operator.fromServer.Load(), l.operator.cpu(l.t)
	do()
	took := l.fleet.awaitDone(l.t, boundFor(len(l.names)))
	l.operator.awaitCalm(l.t, boundFor(len(l.names)))
	each := float64(len(l.names))
	values := map[string]float64{
		"sent bytes":     float64(l.operator.toServer.Load()-toServer) / each,
		"received bytes": float64(l.operator.fromServer.Load()-fromServer) / each,
		"CPU ms":         float64((l.operator.cpu(l.t) - cpu).Milliseconds()) / each,
	}
	if len(took) > 0 {
		values["median s"] = median(took)
	}
	if puts >= 0 {
		values["puts by anyone"] = (etcdPuts(l.t) - puts) / each
	}
	count(l.operator.requests(sent)).add(values, len(l.names))
	if more != nil {
		more(values)
	}
	benchmark := "B6"
	if name == "create" {
		benchmark = "B1"
	}
	record(l.t, result{Benchmark: benchmark, Subject: l.subject, Case: l.what + ": " + name, Size: len(l.names), Round: 1, Values: values})
}
