//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestSeveralMembersGoThroughChanges leads three members of each engine through
// changes of their spec, their Secrets and their children, while an application
// writes.
func TestSeveralMembersGoThroughChanges(t *testing.T) {
	t.Parallel()
	turns := make(chan struct{}, 2)
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			l := beginReplicated(t, e, 3, "")
			l.watchLabels(t)
			l.app.write(t, "value")
			w := newWriter(t, l.database, l.app)
			l.revertsWhatFails(t, w)
			l.areTuned(t, w)
			l.areRotated(t, w)
			l.lose(t, w)
			l.scaleInPastThePrimary(t, w)
			w.stop(t)
			l.keepVolumesInAShutdown(t, w)
			l.areMadeAgain(t, w)
		})
	}
}

// run is one run of a member's server.
type run struct {
	pod      types.UID
	restarts int32
}

// runs are the current runs of the members, by name.
func (l life) runs(t *testing.T) map[string]run {
	t.Helper()
	pods, err := l.pods(t.Context())
	if err != nil {
		t.Fatalf("list the members: %v", err)
	}
	runs := map[string]run{}
	for name, pod := range pods {
		runs[name] = run{pod: pod.UID}
		for _, status := range pod.Status.ContainerStatuses {
			runs[name] = run{pod.UID, status.RestartCount}
		}
	}
	return runs
}

func (l life) expectRuns(t *testing.T, before map[string]run) {
	t.Helper()
	if after := l.runs(t); !maps.Equal(after, before) {
		t.Errorf("the members' runs are %v, and were %v", after, before)
	}
}

// revertsWhatFails asks for what no member can start with, and takes it back. One
// replica tries it; nobody else is disturbed.
func (l life) revertsWhatFails(t *testing.T, w writer) {
	t.Helper()
	another := allEngines()[2]
	if another.name == l.engine.name {
		another = anyEngine()
	}
	for image, reason := range map[string]string{"registry.invalid/none:1": v1alpha1.ReasonImagePullFailed, another.image: v1alpha1.ReasonCrashLooping} {
		before, primary := l.runs(t), l.primary(t).Name
		l.patch(t, fmt.Sprintf(`{"spec":{"image":%q}}`, image))
		l.saysDegraded(t, reason, "Pod "+l.stem()+"-")
		if env.isFull {
			<-time.After(30 * time.Second)
		}
		if failed := l.others(t, before); len(failed) != 1 || failed[0] == primary {
			t.Errorf("with the image %s the members %v are others, and the primary is %s", image, failed, primary)
		}
		w.goesOn(t, time.Now())
		begun := time.Now()
		l.patch(t, `{"spec":{"image":null}}`)
		l.waitWhole(t, 3)
		record(t, "a spec that fails "+string(l.engine.name)+" is taken back to all whole", time.Since(begun))
		if failed := l.others(t, before); len(failed) != 1 || failed[0] == primary {
			t.Errorf("with the image taken back the members %v are others, and the primary is %s", failed, primary)
		}
	}
}

// others are the members whose server isn't that which it was, or is gone.
func (l life) others(t *testing.T, before map[string]run) []string {
	t.Helper()
	var others []string
	after := l.runs(t)
	for name, one := range before {
		if after[name] != one {
			others = append(others, name)
		}
	}
	return others
}

// areTuned sets a parameter that running servers take, and one that takes new ones.
func (l life) areTuned(t *testing.T, w writer) {
	t.Helper()
	before, former := l.runs(t), l.primary(t)
	l.configure(t, l.live)
	for _, member := range l.membersUpTo(3) {
		l.memberShows(t, member, l.live.name, l.live.shown)
	}
	l.saysInEffect(t, l.live.name, v1alpha1.ParameterChangeLive)
	l.expectRuns(t, before)
	begun := time.Now()
	l.configure(t, l.live, l.fixed)
	l.waitWhole(t, 3, uids(before)...)
	w.goesOn(t, time.Now())
	l.expectGap(t, w, begun, "a change that replaces all members")
	for _, member := range l.membersUpTo(3) {
		l.memberShows(t, member, l.fixed.name, l.fixed.shown)
		l.memberShows(t, member, l.live.name, l.live.shown)
	}
	if l.primary(t).Name == former.Name {
		t.Errorf("%s was replaced, and is the primary still", former.Name)
	}
	running := l.runs(t)
	l.patch(t, `{"spec":{"config":null}}`)
	l.waitWhole(t, 3, uids(running)...)
	for _, member := range l.membersUpTo(3) {
		l.memberShows(t, member, l.fixed.name, l.fixed.usual)
		l.memberShows(t, member, l.live.name, l.live.usual)
	}
}

func uids(runs map[string]run) []types.UID {
	var all []types.UID
	for _, one := range runs {
		all = append(all, one.pod)
	}
	return all
}

// expectGap measures for how long nothing was acknowledged since a moment.
func (l life) expectGap(t *testing.T, w writer, since time.Time, what string) {
	t.Helper()
	gap := w.gap(t, since)
	record(t, "no write is acknowledged at "+what+", "+string(l.engine.name), gap)
	if gap > handoverBound {
		t.Errorf("for %s nothing was acknowledged at %s", gap, what)
	}
}

// areRotated gives the application another password, which all members take in
// place, so that a replica that becomes the primary has it, too.
func (l life) areRotated(t *testing.T, w writer) {
	t.Helper()
	before := l.runs(t)
	l.rotate(t, l.stem()+"-auth", rand.Text())
	for _, service := range []string{l.stem() + "-ro", l.stem()} {
		w.expectRecords(t, service)
	}
	l.isRefusedAPassword(t)
	l.expectRuns(t, before)
	w.goesOn(t, time.Now())
}

// lose takes away, one at a time, what several members have besides their pods.
func (l life) lose(t *testing.T, w writer) {
	t.Helper()
	before, topology := l.runs(t), l.topology(t)
	for _, name := range []string{l.stem() + "-auth", l.stem() + "-admin"} {
		held := l.secret(t, name)
		l.comesBack(t, coreResource("secrets"), name)
		if !maps.Equal(l.secret(t, name), held) {
			t.Errorf("Secret %s came back with other content", name)
		}
	}
	budgets := policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	statefulSets := appsv1.SchemeGroupVersion.WithResource("statefulsets")
	l.comesBack(t, budgets, l.stem())
	l.comesBack(t, coreResource("services"), l.stem()+"-ro")
	l.comesBack(t, coreResource("configmaps"), l.stem()+"-topology")
	l.comesBack(t, statefulSets, l.stem())
	l.isPutBack(t, budgets, `{"spec":{"maxUnavailable":3}}`)
	l.isPutBack(t, coreResource("services"), `{"spec":{"selector":{"coolops.cn/role":"replica"}}}`)
	l.isPutBack(t, statefulSets, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":60}}}}`)
	l.waitWhole(t, 3)
	l.expectRuns(t, before)
	for _, key := range []string{"state", "epoch", "data-id", "primary"} {
		if after := l.topology(t); after[key] != topology[key] {
			t.Errorf("the topology says of %s %q, and said %q", key, after[key], topology[key])
		}
	}
	w.goesOn(t, time.Now())
}

// scaleInPastThePrimary has the member of the highest number be the primary, and
// then takes all others but the first away. What comes back is behind the read-only
// Service only with all of the data.
func (l life) scaleInPastThePrimary(t *testing.T, w writer) {
	t.Helper()
	l.becomesPrimary(t, l.member(2))
	begun := time.Now()
	l.patch(t, `{"spec":{"replicas":1}}`)
	l.waitWhole(t, 1)
	if l.recordsTable != "" {
		w.goesOn(t, time.Now())
		l.expectGap(t, w, begun, "a scale-in past the primary")
	}
	w.expectRecords(t, l.stem())
	l.expectClaims(t, 3)
	if _, err := env.kube.PolicyV1().PodDisruptionBudgets(l.namespace).Get(t.Context(), l.stem(), metav1.GetOptions{}); err == nil {
		t.Error("a single member has a disruption budget")
	}
	l.patch(t, `{"spec":{"replicas":3}}`)
	l.waitWhole(t, 3)
	w.goesOn(t, time.Now())
	w.expectRecords(t, l.stem()+"-ro")
}

// becomesPrimary asks for another primary, and waits until all is whole.
func (l life) becomesPrimary(t *testing.T, member string) {
	t.Helper()
	former := l.primary(t).Name
	if former == member {
		return
	}
	l.annotate(t, v1alpha1.AnnotationSwitchover, strconv.Quote(member))
	if got := l.waitPrimaryOtherThan(t, former); got != member {
		t.Errorf("the primary is %s, and %s was asked for", got, member)
	}
	l.annotate(t, v1alpha1.AnnotationSwitchover, "null")
	l.waitWhole(t, 3)
}

// expectClaims waits until the claims of the database are those of so many members.
func (l life) expectClaims(t *testing.T, count int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the claims of %d members", count), func(ctx context.Context) error {
		claims, err := env.kube.CoreV1().PersistentVolumeClaims(l.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + l.stem()})
		var names []string
		for _, claim := range claims.Items {
			names = append(names, strings.TrimPrefix(claim.Name, "data-"))
		}
		slices.Sort(names)
		if err == nil && !slices.Equal(names, l.membersUpTo(count)) {
			err = fmt.Errorf("they are those of %v", names)
		}
		return err
	})
}

// keepVolumesInAShutdown stops all members under a retention that deletes the volumes
// of those that are scaled away: a shutdown scales nothing away.
func (l life) keepVolumesInAShutdown(t *testing.T, w writer) {
	t.Helper()
	volumes := l.volumes(t)
	l.patch(t, `{"spec":{"shutdown":true,"storage":{"retention":{"whenScaled":"Delete"}}}}`)
	l.waitFor(t, 3*patience, v1alpha1.ReasonShutDown)
	eventually(t, 3*patience, "no pod", func(ctx context.Context) error {
		pods, err := l.pods(ctx)
		if len(pods) > 0 {
			err = errors.Join(err, fmt.Errorf("there are %d", len(pods)))
		}
		return err
	})
	l.expectClaims(t, 3)
	l.patch(t, `{"spec":{"shutdown":null}}`)
	l.waitWhole(t, 3)
	if after := l.volumes(t); !slices.Equal(after, volumes) {
		t.Errorf("the volumes are %v, and were %v", after, volumes)
	}
	l.app.expect(t, "after a shutdown", "value")
	w.expectRecords(t, l.stem())
	w.expectEqual(t, l.membersUpTo(3))

	// And here the data go with the member.
	l.patch(t, `{"spec":{"replicas":2}}`)
	l.waitWhole(t, 2)
	l.expectClaims(t, 2)
	l.patch(t, `{"spec":{"replicas":3,"storage":{"retention":{"whenScaled":null}}}}`)
	l.waitWhole(t, 3)
	w.expectEqual(t, l.membersUpTo(3))
}

// volumes are what the claims are bound to, in order.
func (l life) volumes(t *testing.T) []string {
	t.Helper()
	claims, err := env.kube.CoreV1().PersistentVolumeClaims(l.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + l.stem()})
	if err != nil {
		t.Fatalf("list the claims: %v", err)
	}
	var names []string
	for _, claim := range claims.Items {
		names = append(names, claim.Name+" on "+claim.Spec.VolumeName)
	}
	slices.Sort(names)
	return names
}

// areMadeAgain deletes the database while the member of the highest number is the
// primary, and creates it again from what was kept.
func (l life) areMadeAgain(t *testing.T, w writer) {
	t.Helper()
	l.becomesPrimary(t, l.member(2))
	credentials := l.credentials(t)
	kept := append(l.retained(), "PersistentVolumeClaim/data-"+l.member(1), "PersistentVolumeClaim/data-"+l.member(2))
	l.delete(t, kept...)
	l.create(t, replicated(3, ""))
	l.waitWhole(t, 3)
	if !maps.Equal(l.credentials(t), credentials) {
		t.Error("the credentials of the database that was made again differ from the kept ones")
	}
	if primary := l.primary(t).Name; primary != l.member(2) {
		t.Errorf("the primary is %s, and was %s", primary, l.member(2))
	}
	l.app.expect(t, "after delete and create", "value")
	w.expectRecords(t, l.stem())
	w.expectEqual(t, l.membersUpTo(3))
	l.delete(t, kept...)
}

// memberShows waits until a member's server itself shows the value.
func (l life) memberShows(t *testing.T, member, name, value string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%s of %s to be %s", name, member, value), func(ctx context.Context) error {
		got, err := execute(ctx, l.namespace, member, nil, "sh", "-c", l.settingScript, "setting", name)
		if err == nil && got != value {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}
