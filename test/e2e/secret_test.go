//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// losesItsSecrets deletes the application's Secret, and then the operator's. Each
// comes back as it was, for the server knows no other password, and nobody is
// disturbed.
func (l life) losesItsSecrets(t *testing.T) {
	t.Helper()
	before, topology := l.mustPod(t), l.topology(t)
	for _, name := range []string{l.stem() + "-auth", l.stem() + "-admin"} {
		held := l.secret(t, name)
		l.comesBack(t, coreResource("secrets"), name)
		if !maps.Equal(l.secret(t, name), held) {
			t.Errorf("Secret %s came back with other content", name)
		}
		l.expectEvent(t, v1alpha1.EventSecretLost)
		l.waitReady(t)
		l.app.login(t, l.credentials(t))
		l.app.expect(t, "after Secret "+name+" was lost", "value")
		l.shows(t, l.live.name, l.live.usual) // by the operator's account
	}
	l.isUntouched(t, before)
	if after := l.topology(t); !maps.Equal(after, topology) {
		t.Errorf("the topology is %v, and was %v", after, topology)
	}
}

// TestASecretThatIsLostWithoutTheOperatorIsMadeAnew deletes Secrets while nobody
// is there who could remember their passwords. It runs beside no other test: all
// have the same operator.
func TestASecretThatIsLostWithoutTheOperatorIsMadeAnew(t *testing.T) {
	var lives []life
	for _, e := range enginesOnce() {
		l := begin(t, e, "orders", durable)
		l.app.write(t, "value")
		lives = append(lives, l)
	}
	for _, part := range []string{"-auth", "-admin"} {
		losses := make([]loss, len(lives))
		replicas := scaleOperator(t, 0)
		t.Cleanup(func() {
			if t.Failed() {
				scaleOperatorBack(t, replicas)
			}
		})
		for i, l := range lives {
			losses[i] = l.loses(t, l.stem()+part)
		}
		scaleOperatorBack(t, replicas)
		for _, lost := range losses {
			lost.isMadeGood(t, part == "-admin")
		}
		waitForOperators(t, replicas, nil)
	}
}

// TestTheOperatorsSecretOfSeveralMembersIsMadeAnew deletes the Secret by which the
// operator, and the members among each other, are let in, while nobody is there who
// could remember it. All members are replaced for the new one; nothing is lost. It
// runs beside no other test.
func TestTheOperatorsSecretOfSeveralMembersIsMadeAnew(t *testing.T) {
	var groups []*orphaned
	for _, e := range enginesOnce() {
		groups = append(groups, orphan(t, beginReplicated(t, e, 3, v1alpha1.ReplicationModeSync)))
	}
	replicas := scaleOperator(t, 0)
	t.Cleanup(func() {
		if t.Failed() {
			scaleOperatorBack(t, replicas)
		}
	})
	former := make([]map[string]run, len(groups))
	for i, group := range groups {
		former[i] = group.runs(t)
		if err := env.kube.CoreV1().Secrets(group.namespace).Delete(t.Context(), group.stem()+"-admin", metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete the operator's Secret: %v", err)
		}
	}
	begun := time.Now()
	scaleOperatorBack(t, replicas)
	for i, group := range groups {
		group.waitWhole(t, 3, uids(former[i])...)
		group.w.goesOn(t, time.Now())
		record(t, "no write is acknowledged while the operator's password is made anew, "+string(group.engine.name), group.w.gap(t, begun))
		for _, member := range group.membersUpTo(3) {
			group.memberShows(t, member, group.live.name, group.live.usual) // by the operator's account
		}
		group.heals(t, group.w)
	}
	waitForOperators(t, replicas, nil)
}

// loss is a Secret that was lost, with what it held, and how the database was.
type loss struct {
	life
	name string
	// held is what the Secret held, and was the topology.
	held, was map[string]string
	pod       *corev1.Pod
}

// loses deletes a Secret.
func (l life) loses(t *testing.T, name string) loss {
	t.Helper()
	lost := loss{life: l, name: name, held: l.secret(t, name), was: l.topology(t), pod: l.mustPod(t)}
	if err := env.kube.CoreV1().Secrets(l.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete Secret %s: %v", name, err)
	}
	return lost
}

// isMadeGood waits until the Secret is there again, with another password, which
// is the database's. The member is restarted for the operator's own alone.
func (l loss) isMadeGood(t *testing.T, isRestarted bool) {
	t.Helper()
	var password string
	eventually(t, patience, "Secret "+l.name, func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		password = string(secret.Data["password"])
		if password == "" || password == l.held["password"] {
			return errors.New("it has no other password")
		}
		return nil
	})
	l.expectEvent(t, v1alpha1.EventSecretLost)
	if isRestarted {
		l.waitReplaced(t, l.pod.UID)
	} else {
		l.hasPassword(t, password)
		l.app.login(t, l.held)
		if answer, err := l.app.tryFor(t.Context(), 0, l.readQuery(key)...); err == nil {
			t.Errorf("with the lost password there is the answer %q", answer)
		}
		l.isUntouched(t, l.pod)
	}
	l.waitReady(t)
	l.app.login(t, l.credentials(t))
	l.app.expect(t, "after Secret "+l.name+" was lost without the operator", "value")
	l.app.write(t, "value")
	l.shows(t, l.live.name, l.live.usual) // by the operator's account
	if after := l.topology(t); !maps.Equal(after, l.was) {
		t.Errorf("the topology is %v, and was %v", after, l.was)
	}
}
