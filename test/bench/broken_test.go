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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// healthy is how many resources are edited beside the broken ones.
const healthy = 10

// troubled is how resources of a kind are edited, and how others of it are broken.
type troubled struct {
	subject, stem string
	kind          kind
	patch         func(number int) string
	breakIn       func(t *testing.T, namespace string, all []string)
}

// TestB8BrokenResources edits healthy resources, in turns by an operator that sees
// them alone, and by one that sees as many broken ones as there are, too.
func TestB8BrokenResources(t *testing.T) {
	for _, row := range []troubled{
		{ours, "db", databases{engine: engines()[0], members: 1}, changeOfService, breakDatabases},
		{ourFoos, "foo", foos{}, func(number int) string { return fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+number%2) }, breakFoos},
	} {
		t.Run(row.stem, func(t *testing.T) { row.run(t, newNamespace(t), newNamespace(t)) })
	}
}

func (r troubled) run(t *testing.T, good, bad string) {
	fleet, all := newFleet(t, r.kind, good), names(r.stem, 0, healthy)
	r.breakIn(t, bad, names(r.stem, 0, env.sizes.broken))
	maker := r.operator(good).start(t)
	fleet.make(t, all)
	fleet.awaitDone(t, boundFor(env.sizes.broken))
	maker.end(t, syscall.SIGTERM)
	edits := 0
	edit := func() string {
		edits++
		return r.patch(edits)
	}
	for round := 1; round <= env.sizes.rounds; round++ {
		for turn := range 2 {
			namespaces, what := good, "healthy ones alone"
			if (round+turn)%2 == 0 {
				namespaces, what = good+","+bad, "beside broken ones"
			}
			values := r.editBeside(t, fleet, all, namespaces, bad, edit)
			record(t, result{Benchmark: "B8", Subject: r.subject, Case: what, Size: env.sizes.broken, Round: round, Values: values})
		}
	}
}

// operator is one that sees some namespaces. There is no other, so it needs no lease.
func (r troubled) operator(namespaces string) program {
	return theOperator("broken", "--leader-elect=false", "--namespaces="+namespaces)
}

// editBeside edits all healthy ones by an operator that has just been started, and
// looks at all for the first time, and once more later.
func (r troubled) editBeside(t *testing.T, fleet *fleet, all []string, namespaces, bad string, edit func() string) map[string]float64 {
	t.Helper()
	operator := r.operator(namespaces).start(t)
	values := map[string]float64{}
	values["edited at start, median s"], values["edited at start, last s"] = editAll(t, fleet, all, edit())
	operator.awaitSettled(t, env.sizes.rest) // what is tried again goes on
	sent, cpu := operator.sent(), operator.cpu(t)
	values["edited, median s"], values["edited, last s"] = editAll(t, fleet, all, edit())
	<-time.After(env.sizes.rest / 4)
	counted := count(slices.DeleteFunc(about(operator.requests(sent), r.stem, bad), isAtRest))
	values["requests for broken ones per min"] = float64(counted.writes+counted.reads+counted.events) / (env.sizes.rest / 4).Minutes()
	values["CPU ms per s"] = float64((operator.cpu(t) - cpu).Milliseconds()) / (env.sizes.rest / 4).Seconds()
	operator.end(t, syscall.SIGTERM)
	return values
}

// editAll changes all, and returns how long the median and the last one took.
func editAll(t *testing.T, fleet *fleet, all []string, patch string) (middle, last float64) {
	t.Helper()
	fleet.change(t, all, patch)
	took := fleet.awaitDone(t, boundFor(env.sizes.broken))
	return median(took), took[len(took)-1].Seconds()
}

// breakDatabases makes databases that can't be made, for four reasons in turn: a
// Secret isn't there, a name is taken, a parameter is impossible, and no node has the
// room.
func breakDatabases(t *testing.T, namespace string, all []string) {
	t.Helper()
	reasons := []func(*v1alpha1.DatabaseManagerSpec){
		func(spec *v1alpha1.DatabaseManagerSpec) { spec.Auth = &v1alpha1.AuthSpec{SecretName: "missing"} },
		nil, // the name is taken
		func(spec *v1alpha1.DatabaseManagerSpec) {
			spec.Config = map[string]v1alpha1.ConfigValue{"timeout": "impossible"}
		},
		func(spec *v1alpha1.DatabaseManagerSpec) {
			spec.NodeSelector = map[string]v1alpha1.LabelValue{"example.com/nowhere": "true"}
		},
	}
	for i, reason := range reasons {
		var broken []string
		for at := i; at < len(all); at += len(reasons) {
			broken = append(broken, all[at])
		}
		kind := databases{engine: v1alpha1.DatabaseTypeRedis, members: 1, change: reason}
		inParallel(t, broken, func(ctx context.Context, name string) error {
			if reason == nil {
				if err := takeName(ctx, namespace, name); err != nil {
					return err
				}
			}
			_, err := kind.create(ctx, namespace, name)
			return err
		})
	}
}

func takeName(ctx context.Context, namespace, name string) error {
	_, err := env.kube.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	return err
}

// breakFoos makes Foos whose Deployments' names are taken by others.
func breakFoos(t *testing.T, namespace string, all []string) {
	t.Helper()
	inParallel(t, all, func(ctx context.Context, name string) error {
		if err := takeDeployment(ctx, namespace, name); err != nil {
			return err
		}
		_, err := foos{}.create(ctx, namespace, name)
		return err
	})
}

// takeDeployment makes a Deployment that isn't ours, and has no pod.
func takeDeployment(ctx context.Context, namespace, name string) error {
	labels := map[string]string{"foreign": name}
	_, err := env.kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
		},
	}, metav1.CreateOptions{})
	return err
}
