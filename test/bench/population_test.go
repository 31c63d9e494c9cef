//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// populated are those that a population consists of: one member with storage, which
// has a workload, a pod and a claim beside the nine other children.
func populated() databases {
	return databases{engine: v1alpha1.DatabaseTypePostgreSQL, members: 1, isDurable: true}
}

// TestB2ToB5Population makes more and more databases, and measures at each size what
// the operator costs: made (B1), at rest (B2), restarted (B3), in memory (B4), and
// changed (B5).
func TestB2ToB5Population(t *testing.T) {
	p := &population{t: t, namespace: newNamespace(t)}
	p.program = theOperator("population", "--namespaces="+p.namespace)
	p.operator = p.program.start(t)
	p.fleet = newFleet(t, populated(), p.namespace)
	p.operator.awaitLead(t)
	p.keep("B4", "databases in memory", p.memory())
	p.keep("B2", "databases at rest", restOf(t, p.operator, 1))
	for _, size := range env.sizes.databases {
		p.growTo(size)
		resting := restOf(t, p.operator, size)
		p.idle = resting["CPU ms per s"]
		p.keep("B2", "databases at rest", resting)
		p.keep("B4", "databases in memory", p.memory())
		for round := 1; round <= env.sizes.rounds; round++ {
			p.changeSome(round)
		}
		if slices.Contains(env.sizes.restarts, size) {
			for round := 1; round <= env.sizes.rounds; round++ {
				p.restart(round)
			}
		}
	}
	p.addForeign()
	p.keep("B4", "beside foreign objects", p.memory())
	p.keep("B2", "beside foreign objects", restOf(t, p.operator, p.size))
}

// population are databases, and the operator that serves them.
type population struct {
	t         *testing.T
	program   program
	operator  *process
	fleet     *fleet
	namespace string
	size      int
	round     int
	// idle is the CPU at rest, in ms a second: that of asking members.
	idle float64
	// changes and strangers number what must differ each time.
	changes, strangers int
}

func (p *population) keep(benchmark, what string, values map[string]float64) {
	p.t.Helper()
	record(p.t, result{Benchmark: benchmark, Subject: ours, Case: what, Size: p.size, Round: max(p.round, 1), Values: values})
}

func (p *population) bound() time.Duration { return boundFor(p.size) }

// growTo makes databases until there are so many.
func (p *population) growTo(size int) {
	p.t.Helper()
	more := names("db", p.size, size)
	p.size = size
	p.round = 0
	values := measure(p.t, p.operator, len(more), func(values map[string]float64) {
		begun := time.Now()
		p.fleet.make(p.t, more)
		values["median s"] = median(p.fleet.awaitDone(p.t, p.bound()))
		values["created per s"] = float64(len(more)) / time.Since(begun).Seconds()
		p.operator.awaitCalm(p.t, p.bound())
	})
	p.keep("B1", "databases created, of so many", values)
}

func (p *population) memory() map[string]float64 {
	p.t.Helper()
	heap := p.operator.heap(p.t) // collects first
	return map[string]float64{"live heap MB": float64(heap) / 1e6, "Pss MB": float64(p.operator.pss(p.t)) / 1e6}
}

// changeSome changes so many databases as fast as they can be.
func (p *population) changeSome(round int) {
	p.t.Helper()
	p.changes++
	p.round = round
	some := names("db", 0, min(env.sizes.changes, p.size))
	values := measure(p.t, p.operator, len(some), func(values map[string]float64) {
		begun := time.Now()
		p.fleet.change(p.t, some, changeOfService(p.changes))
		values["median s"] = median(p.fleet.awaitDone(p.t, p.bound()))
		values["changes per s"] = float64(len(some)) / time.Since(begun).Seconds()
		p.operator.awaitCalm(p.t, p.bound())
	})
	// Members are asked all the while, and all of them.
	values["CPU ms without asking"] = values["CPU ms"] - p.idle*values["window s"]/float64(len(some))
	p.keep("B5", fmt.Sprintf("%d databases changed", len(some)), values)
}

// restart ends the operator, and starts it again, together with one more database.
func (p *population) restart(round int) {
	p.t.Helper()
	t := p.t
	p.strangers++
	p.round = round
	name := fmt.Sprintf("restarted-%d", p.strangers)
	p.operator.end(t, syscall.SIGTERM)
	sent := env.audit.Count(p.operator.user)
	p.operator = p.program.start(t)
	p.fleet.make(t, []string{name})
	p.fleet.awaitDone(t, p.bound())
	p.awaitDrained()
	drained, cpu, received := time.Since(p.operator.began), p.operator.cpu(t), p.operator.fromServer.Load()
	p.operator.awaitCalm(t, p.bound())
	requests := p.operator.requests(sent)
	served, err := firstWrite(requests, name, p.namespace)
	if err != nil {
		t.Fatal(err)
	}
	counted, own := count(requests), count(about(requests, name, p.namespace))
	p.keep("B3", "restart", map[string]float64{
		"writes": float64(counted.writes - own.writes), "reads": float64(counted.reads - own.reads), "events": float64(counted.events - own.events),
		"received MB": float64(received) / 1e6, "new database served after s": served.Sub(p.operator.began).Seconds(),
		"drained after s": drained.Seconds(), "CPU s": cpu.Seconds(),
	})
	p.fleet.delete(t, []string{name}, p.bound())
	p.operator.awaitCalm(t, p.bound())
}

// awaitDrained waits until the operator's queues are empty, and nothing is being done.
func (p *population) awaitDrained() {
	p.t.Helper()
	eventually(p.t, p.bound(), "the queues are empty", func(context.Context) error {
		text, err := get(p.t.Context(), "http://"+p.operator.metrics+"/metrics")
		if err != nil {
			return err
		}
		if sumOf(text, "workqueue_depth") > 0 || sumOf(text, "workqueue_unfinished_work_seconds") > 0 {
			return errors.New("something is left to do")
		}
		if done := sumOf(text, "controller_syncs_total"); int(done) < p.size {
			return fmt.Errorf("%g of %d have been looked at", done, p.size)
		}
		return nil
	})
}

// addForeign makes objects that are none of the operator's business, of kinds that it
// watches.
func (p *population) addForeign() {
	p.t.Helper()
	p.round = 0
	payload := strings.Repeat("x", 1024)
	core := env.kube.CoreV1()
	inParallel(p.t, names("foreign", 0, env.sizes.foreign), func(ctx context.Context, name string) error {
		object := metav1.ObjectMeta{Name: name}
		_, secretErr := core.Secrets(p.namespace).Create(ctx, &corev1.Secret{ObjectMeta: object, StringData: map[string]string{"x": payload}}, metav1.CreateOptions{})
		_, mapErr := core.ConfigMaps(p.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: object, Data: map[string]string{"x": payload}}, metav1.CreateOptions{})
		_, podErr := core.Pods(p.namespace).Create(ctx, &corev1.Pod{ObjectMeta: object, Spec: corev1.PodSpec{
			SchedulerName: "nobody", Containers: []corev1.Container{{Name: "x", Image: "x"}},
		}}, metav1.CreateOptions{})
		return errors.Join(secretErr, mapErr, podErr)
	})
	p.operator.awaitCalm(p.t, p.bound())
}
