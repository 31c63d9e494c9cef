//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/test/e2e/audit"
)

// TestFoosBesideTheTwin has our controller and the twin serve the same number of
// Foos, in turns, so that what happens to the machine happens to both.
func TestFoosBesideTheTwin(t *testing.T) {
	if env.twin == "" {
		t.Fatal("BENCH_TWIN isn't set: run make bench-quick")
	}
	for round := 1; round <= env.sizes.rounds; round++ {
		// Each begins as often as the other.
		for turn := range 2 {
			isTwin := (round+turn)%2 == 0
			t.Run(fmt.Sprintf("round %d, twin %t", round, isTwin), func(t *testing.T) { serveFoos(t, isTwin, round) })
		}
	}
}

func serveFoos(t *testing.T, isTwin bool, round int) {
	namespace := newNamespace(t)
	subject, program := ourFoos, theOperator("foo", "--controllers=foo", "--leader-elect=false", "--namespaces="+namespace)
	if isTwin {
		subject, program = twins, twinProgram(namespace)
	}
	size := env.sizes.foos
	all := names("foo", 0, size)
	fleet := newFleet(t, foos{}, namespace)
	first := program.start(t)
	awaitWatches(t, first)
	empty := first.pss(t)
	keep := func(benchmark, what string, values map[string]float64) {
		record(t, result{Benchmark: benchmark, Subject: subject, Case: what, Size: size, Round: round, Values: values})
	}

	keep("B1", "Foo: all created", measure(t, first, size, func(values map[string]float64) {
		begun := time.Now()
		fleet.make(t, all)
		made := time.Since(begun)
		values["median s"] = median(fleet.awaitDone(t, boundFor(size)))
		values["made after s"], values["all done after s"] = made.Seconds(), time.Since(begun).Seconds()
	}))
	keep("B5", "Foo: all changed", measure(t, first, size, func(values map[string]float64) {
		begun := time.Now()
		fleet.change(t, all, `{"spec":{"replicas":2}}`)
		values["median s"] = median(fleet.awaitDone(t, boundFor(size)))
		values["changes per s"] = float64(size) / time.Since(begun).Seconds()
	}))
	if !isTwin {
		first.awaitCalm(t, boundFor(size))
	}
	keep("B2", "Foo: at rest", restOf(t, first, size))
	keep("B4", "Foo: memory", map[string]float64{"Pss MB": float64(first.pss(t)) / 1e6, "Pss KB of each": float64(first.pss(t)-empty) / float64(size) / 1e3})

	first.end(t, syscall.SIGKILL)
	sent, killed := env.audit.Count(first.user), time.Now()
	second := program.start(t)
	fleet.make(t, []string{"new"})
	values := map[string]float64{"new Foo's Deployment after s": awaitDeployment(t, namespace, "new", killed)}
	fleet.awaitDone(t, boundFor(1))
	if !isTwin {
		second.awaitCalm(t, boundFor(size))
	}
	values["received bytes"] = float64(second.fromServer.Load())
	others := second.requests(sent)
	counted := count(others)
	for _, entry := range about(others, "new", namespace) {
		if entry.IsWrite() && !isEvent(entry) {
			counted.writes--
		}
	}
	values["writes"], values["events"] = float64(counted.writes), float64(counted.events)
	keep("B3", "Foo: killed and started again", values)
	second.end(t, syscall.SIGTERM)
	fleet.delete(t, append(all, "new"), boundFor(size))
}

// twinProgram is what the articles print, for the Foos of a namespace.
func twinProgram(namespace string) program {
	return program{path: env.twin, account: "twin", flags: []string{"--namespace=" + namespace}, isTwin: true}
}

// awaitWatches waits until a process that was just started has asked for what it
// watches, and has had the time to read it.
func awaitWatches(t *testing.T, p *process) {
	t.Helper()
	p.awaitCalm(t, boundFor(1))
	if p.sent() == 0 {
		t.Fatalf("%s asks for nothing", p.account)
	}
}

// measure counts what a process does while something is done to so many resources;
// requests, bytes and CPU are those of each.
func measure(t *testing.T, p *process, size int, do func(values map[string]float64)) map[string]float64 {
	t.Helper()
	sent, cpu := p.sent(), p.cpu(t)
	toServer, fromServer := p.toServer.Load(), p.fromServer.Load()
	own := p.metric(t, "kubernetes_client_requests_total")
	values, begun := map[string]float64{}, time.Now()
	do(values)
	values["window s"] = time.Since(begun).Seconds()
	if !p.isTwin {
		values["requests by its own count"] = (p.metric(t, "kubernetes_client_requests_total") - own) / float64(size)
	}
	values["CPU ms"] = float64((p.cpu(t) - cpu).Milliseconds()) / float64(size)
	values["sent bytes"] = float64(p.toServer.Load()-toServer) / float64(size)
	values["received bytes"] = float64(p.fromServer.Load()-fromServer) / float64(size)
	count(p.requests(sent)).add(values, size)
	return values
}

// restOf counts what a process does for so many resources that need nothing, for each
// of them and an hour.
func restOf(t *testing.T, p *process, size int) map[string]float64 {
	t.Helper()
	sent, cpu := p.sent(), p.cpu(t)
	bytes := p.toServer.Load() + p.fromServer.Load()
	<-time.After(env.sizes.rest)
	hours := env.sizes.rest.Hours() * float64(max(size, 1))
	// A watch is opened anew every few minutes, however much it brings.
	asked := slices.DeleteFunc(p.requests(sent), func(entry audit.Entry) bool { return entry.Verb == "watch" })
	counted := count(asked)
	values := map[string]float64{
		"CPU ms per s": float64((p.cpu(t) - cpu).Microseconds()) / 1e3 / env.sizes.rest.Seconds(),
		"bytes per s":  float64(p.toServer.Load()+p.fromServer.Load()-bytes) / env.sizes.rest.Seconds(),
		"leases per h": float64(counted.leases) / env.sizes.rest.Hours(),
	}
	for name, number := range map[string]int{"writes per h": counted.writes, "reads per h": counted.reads, "events per h": counted.events} {
		values[name] = float64(number) / hours
	}
	return values
}

// awaitDeployment returns how many seconds after a moment a Deployment is there.
func awaitDeployment(t *testing.T, namespace, name string, since time.Time) float64 {
	t.Helper()
	eventually(t, boundFor(1), "a new Foo's Deployment", func(ctx context.Context) error {
		_, err := env.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return time.Since(since).Seconds()
}
