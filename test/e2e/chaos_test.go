//go:build e2e && chaos

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// chaos is a database of three members that has faults and planned changes happen
// to it at random, while an application writes.
type chaos struct {
	life
	w      writer
	n      node
	random *rand.Rand
}

// event is a fault, or a planned change; it returns once it is over, and the
// database need not be whole by then.
type event struct {
	name string
	do   func(c *chaos, t *testing.T)
}

// settle is within what time a database has to be whole again.
const settle = 5 * time.Minute

func faults() []event {
	return []event{
		{"kill the server of a member", func(c *chaos, t *testing.T) { c.n.kill(t, c.any(t)) }},
		{"kill the server of the primary", func(c *chaos, t *testing.T) { c.n.kill(t, c.primary(t)) }},
		{"delete the pod of a member", func(c *chaos, t *testing.T) { c.deletePodOf(t, c.any(t)) }},
		{"delete the primary's pod without grace", func(c *chaos, t *testing.T) { deleteAtOnce(t, c.primary(t)) }},
		{"lose a replica's pod and volume", (*chaos).loseReplica},
		{"cut the primary off", func(c *chaos, t *testing.T) { c.cutOff(t, c.primary(t)) }},
		{"cut a replica off", func(c *chaos, t *testing.T) { c.cutOff(t, c.anyReplica(t)) }},
		{"stop a node, and start it", (*chaos).stopNode},
		{"kill the operator", func(_ *chaos, t *testing.T) { killOperators(t) }},
	}
}

func plannedChanges() []event {
	return []event{
		{"switch over", (*chaos).switchOver},
		{"change a parameter that takes a restart", (*chaos).roll},
		{"scale to two and back", (*chaos).scale},
	}
}

// happen is that many faults, and a quarter of that of planned changes.
func (c *chaos) happen(number int) []event {
	var happening []event
	for range number {
		happening = append(happening, c.oneOf(faults()))
	}
	for range (number + 3) / 4 {
		happening = append(happening, c.oneOf(plannedChanges()))
	}
	c.random.Shuffle(len(happening), func(i, j int) { happening[i], happening[j] = happening[j], happening[i] })
	return happening
}

func (c *chaos) oneOf(events []event) event { return events[c.random.IntN(len(events))] }

// TestChaos has CHAOS_FAULTS faults, and planned changes between them, happen to a
// database of CHAOS_ENGINE, in an order that CHAOS_SEED gives: make chaos
// ENGINE=redis FAULTS=20.
func TestChaos(t *testing.T) {
	seed := wish(t, "CHAOS_SEED", uint64(time.Now().UnixNano()))
	number := int(wish(t, "CHAOS_FAULTS", 20))
	t.Logf("CHAOS_SEED=%d", seed)
	engines := allEngines()
	found := slices.IndexFunc(engines, func(e engine) bool { return string(e.name) == os.Getenv("CHAOS_ENGINE") })
	if found < 0 {
		t.Fatalf("CHAOS_ENGINE is %q, and no engine", os.Getenv("CHAOS_ENGINE"))
	}
	l := beginReplicated(t, engines[found], 3, v1alpha1.ReplicationModeSync)
	l.watchLabels(t)
	c := &chaos{life: l, w: newWriter(t, l.database, l.app), n: newNode(t), random: rand.New(rand.NewPCG(seed, 0))}
	var gaps []time.Duration
	happening := c.happen(number)
	for i, event := range happening {
		begun := time.Now()
		event.do(c, t)
		c.settles(t, event.name)
		gap := c.w.gap(t, begun)
		gaps = append(gaps, gap)
		t.Logf("%3d of %d: %s: %.1f s without an acknowledged write, whole after %.1f s", i+1, len(happening), event.name, gap.Seconds(), time.Since(begun).Seconds())
	}
	c.w.stop(t)
	c.w.expectRecords(t, l.stem())
	c.w.expectEqual(t, l.membersUpTo(3))
	slices.Sort(gaps)
	for _, percent := range []int{50, 90, 100} {
		record(t, fmt.Sprintf("no write is acknowledged in %d of 100 cases of %s, at most", percent, l.engine.name), gaps[(len(gaps)-1)*percent/100])
	}
}

// wish is a number that the environment gives, or else another.
func wish(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q, and no number", name, value)
	}
	return number
}

// unnoticed is for how long a fault may not be in the status yet.
const unnoticed = 2 * time.Second

// settles waits until all is whole, and not just still, and writes go on.
func (c *chaos) settles(t *testing.T, what string) {
	t.Helper()
	var since time.Time
	eventually(t, settle, "whole after: "+what, func(ctx context.Context) error {
		if err := c.isWhole(ctx, 3, nil); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < unnoticed {
			return errors.New("it has been for a moment only")
		}
		return nil
	})
	c.w.goesOn(t, time.Now())
}

// any is one of the members, whichever role it has.
func (c *chaos) any(t *testing.T) *corev1.Pod {
	t.Helper()
	return c.podOf(t, c.member(c.random.IntN(3)))
}

func (c *chaos) anyReplica(t *testing.T) *corev1.Pod {
	t.Helper()
	replicas := slices.DeleteFunc(c.membersUpTo(3), func(name string) bool { return name == c.primary(t).Name })
	return c.podOf(t, replicas[c.random.IntN(len(replicas))])
}

func (c *chaos) deletePodOf(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := env.kube.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete pod %s: %v", pod.Name, err)
	}
	c.waitForAnother(t, pod)
}

// waitForAnother waits until a pod of that name is another one.
func (c *chaos) waitForAnother(t *testing.T, former *corev1.Pod) {
	t.Helper()
	eventually(t, settle, "another pod "+former.Name, func(ctx context.Context) error {
		pod, err := env.kube.CoreV1().Pods(former.Namespace).Get(ctx, former.Name, metav1.GetOptions{})
		if err == nil && pod.UID == former.UID {
			err = fmt.Errorf("it is still that of %s", former.UID)
		}
		return err
	})
}

func (c *chaos) loseReplica(t *testing.T) {
	t.Helper()
	pod := c.anyReplica(t)
	if err := env.kube.CoreV1().PersistentVolumeClaims(pod.Namespace).Delete(t.Context(), "data-"+pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the claim of %s: %v", pod.Name, err)
	}
	c.deletePodOf(t, pod)
}

// cutOff keeps a member from everybody for up to 20 s.
func (c *chaos) cutOff(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	rejoin := c.isolate(t, pod.Name)
	defer rejoin()
	<-time.After(time.Duration(2+c.random.IntN(18)) * time.Second)
}

// stopNode takes away a node on which the application isn't, with all that is on
// it, for longer than it takes until its pods are told to go.
func (c *chaos) stopNode(t *testing.T) {
	t.Helper()
	client, err := env.kube.CoreV1().Pods(c.namespace).Get(t.Context(), c.app.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := slices.DeleteFunc(readyNodes(t), func(name string) bool { return name == client.Spec.NodeName })
	stopped := nodes[c.random.IntN(len(nodes))]
	if err := localcluster(t.Context(), "node", "stop", stopped); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Duration(5+c.random.IntN(60)) * time.Second)
	if err := localcluster(t.Context(), "node", "start", stopped); err != nil {
		t.Fatal(err)
	}
	eventually(t, settle, stopped+" ready", func(context.Context) error {
		if !slices.Contains(readyNodes(t), stopped) {
			return errors.New("it isn't")
		}
		return nil
	})
	c.n.awaitPods(t)
}

func (c *chaos) switchOver(t *testing.T) {
	t.Helper()
	former := c.primary(t).Name
	c.annotate(t, v1alpha1.AnnotationSwitchover, strconv.Quote(c.anyReplica(t).Name))
	c.waitPrimaryOtherThan(t, former)
	c.annotate(t, v1alpha1.AnnotationSwitchover, "null")
}

func (c *chaos) roll(t *testing.T) {
	t.Helper()
	stored, err := c.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	former := c.podOf(t, c.member(0))
	if stored.Spec.Config[c.fixed.name] == "" {
		c.patch(t, fmt.Sprintf(`{"spec":{"config":{%q:%q}}}`, c.fixed.name, c.fixed.value))
	} else {
		c.patch(t, `{"spec":{"config":null}}`)
	}
	c.waitForAnother(t, former)
}

func (c *chaos) scale(t *testing.T) {
	t.Helper()
	c.patch(t, `{"spec":{"replicas":2}}`)
	c.waitWhole(t, 2)
	c.patch(t, `{"spec":{"replicas":3}}`)
}
