//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// many is how many records are there before the primary is lost, and handoverBound
// for how long a planned change of the primary may keep writes waiting.
const (
	many          = 1000
	handoverBound = 20 * time.Second
)

// TestAPrimaryThatIsLostIsSucceeded takes the primary's pod and volume away while
// there is no operator, so that it comes back empty before anybody looks. It runs
// beside no other test: all have the same operator.
func TestAPrimaryThatIsLostIsSucceeded(t *testing.T) {
	var lives []life
	for _, e := range enginesOnce() {
		l := beginReplicated(t, e, 3, "")
		l.app.writeMany(t)
		lives = append(lives, l)
	}
	replicas := scaleOperator(t, 0)
	t.Cleanup(func() {
		if t.Failed() {
			scaleOperatorBack(t, replicas)
		}
	})
	var lost []string
	for _, l := range lives {
		lost = append(lost, l.losesItsPrimarysVolume(t))
	}
	scaleOperatorBack(t, replicas)
	for i, l := range lives {
		begun := time.Now()
		if successor := l.waitPrimaryOtherThan(t, lost[i]); successor == lost[i] {
			t.Errorf("the member that lost its data is the primary")
		}
		record(t, "an operator's start to another primary of "+string(l.engine.name), time.Since(begun))
		l.waitWhole(t, 3)
		for _, member := range l.membersUpTo(3) {
			l.expectMany(t, fmt.Sprintf("%s.%s-members", member, l.stem()))
		}
		l.expectMany(t, l.stem())
		w := newWriter(t, l.database, l.app)
		l.handsOver(t, w)
		w.stop(t)
		w.expectRecords(t, l.stem())
	}
}

// writeMany writes records that an application would have written before, of
// negative numbers, and waits until two replicas have them.
func (c client) writeMany(t *testing.T) {
	t.Helper()
	var numbers []string
	for number := range many {
		numbers = append(numbers, strconv.Itoa(-1-number))
	}
	if c.recordsTable == "" {
		c.ask(t, append([]string{"sadd", "records"}, numbers...)...)
		return
	}
	c.ask(t, c.recordsTable+"INSERT INTO records VALUES ("+strings.Join(numbers, "), (")+")")
}

// expectMany waits until a host has them.
func (l life) expectMany(t *testing.T, host string) {
	t.Helper()
	eventually(t, 30*time.Second, "all records on "+host, func(ctx context.Context) error {
		records, err := l.app.records(ctx, host+"."+l.namespace+".svc")
		if err != nil {
			return err
		}
		if len(records) < many || records[0] != -many || records[many-1] != -1 {
			return fmt.Errorf("it has %d records", len(records))
		}
		return nil
	})
}

// losesItsPrimarysVolume deletes the primary's pod and claim, and waits until
// others have been made in their place. It returns the primary's name.
func (l life) losesItsPrimarysVolume(t *testing.T) string {
	t.Helper()
	pod := l.primary(t)
	claims := env.kube.CoreV1().PersistentVolumeClaims(l.namespace)
	claim, err := claims.Get(t.Context(), "data-"+pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the primary's claim: %v", err)
	}
	if err := env.kube.CoreV1().Pods(l.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the primary's pod: %v", err)
	}
	eventually(t, patience, "an empty member in the primary's place", func(ctx context.Context) error {
		newer, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && newer.UID == claim.UID:
			return errors.New("its claim isn't made again yet")
		case err != nil:
			return err
		}
		other, err := env.kube.CoreV1().Pods(l.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && (other.UID == pod.UID || len(other.Status.ContainerStatuses) == 0 || other.Status.ContainerStatuses[0].ContainerID == "") {
			err = errors.New("its container hasn't been started yet")
		}
		return err
	})
	return pod.Name
}

// handsOver asks for another primary, by the annotation, and measures for how long
// nothing is acknowledged.
func (l life) handsOver(t *testing.T, w writer) {
	t.Helper()
	former, begun := l.primary(t), time.Now()
	successor := l.member(0)
	if former.Name == successor {
		successor = l.member(2)
	}
	l.annotate(t, v1alpha1.AnnotationSwitchover, strconv.Quote(successor))
	if got := l.waitPrimaryOtherThan(t, former.Name); got != successor {
		t.Errorf("the primary is %s, and %s was asked for", got, successor)
	}
	l.waitWhole(t, 3)
	w.goesOn(t, time.Now())
	gap := w.gap(t, begun)
	record(t, "no write is acknowledged at a switchover of "+string(l.engine.name), gap)
	if gap > handoverBound {
		t.Errorf("for %s nothing was acknowledged", gap)
	}
	l.annotate(t, v1alpha1.AnnotationSwitchover, "null")
}
