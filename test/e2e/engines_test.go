//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// TestEngines leads a database of each engine through its life, as an
// application sees it: -run 'TestEngines/redis/durable' is one of them. In CI all
// but one have a short life.
func TestEngines(t *testing.T) {
	t.Parallel()
	for i, e := range allEngines() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			if i > 0 && !env.isFull {
				t.Run("smoke", func(t *testing.T) { liveShortly(t, e) })
				return
			}
			t.Run("durable", func(t *testing.T) { liveDurably(t, e) })
			t.Run("ephemeral", func(t *testing.T) { liveEphemerally(t, e) })
		})
	}
}

// life is a database with an application that uses it.
type life struct {
	database
	app client
}

// begin makes a database, and measures how long it takes to its first answer.
// The client is there before, so that the image is too.
func begin(t *testing.T, e engine, name string, options ...func(*v1alpha1.DatabaseManagerSpec)) life {
	t.Helper()
	return beginIn(t, newNamespace(t), e, name, options...)
}

func beginIn(t *testing.T, namespace string, e engine, name string, options ...func(*v1alpha1.DatabaseManagerSpec)) life {
	t.Helper()
	l := life{database: database{engine: e, namespace: namespace, name: name}, app: newClient(t, namespace, e)}
	begun := time.Now()
	l.create(t, options...)
	l.app.login(t, l.credentials(t))
	l.app.read(t)
	record(t, "apply to first answer of "+string(e.name), time.Since(begun))
	l.waitReady(t)
	return l
}

// liveShortly is what CI has time for.
func liveShortly(t *testing.T, e engine) {
	n, operators := newNode(t), followOperators(t)
	l := begin(t, e, "orders", durable)
	l.isUsed(t)
	l.isClosed(t)
	l.losesItsPod(t)
	l.losesItsSecrets(t)
	l.isRotated(t)
	l.isTuned(t, n)
	l.keepsItsSecrets(t, n, operators)
	l.delete(t, l.retained()...)
}

func liveDurably(t *testing.T, e engine) {
	older, newest := e.versions()
	first := newest
	if older != "" {
		first = older
	}
	n, operators := newNode(t), followOperators(t)
	l := begin(t, e, "orders", durable, ofVersion(first))
	l.isUsed(t)
	l.isClosed(t)
	l.losesItsPod(t)
	l.losesItsServer(t, n)
	l.losesItsSecrets(t)
	l.changesResources(t)
	l.isRotated(t)
	l.isTuned(t, n)
	l.isShutDown(t)
	l.keepsItsSecrets(t, n, operators)
	if older != "" {
		l.changesVersion(t, older, newest)
	}
	l.isMadeAgain(t)
	l.losesItsVolume(t)
	l.leavesNothing(t)
}

func liveEphemerally(t *testing.T, e engine) {
	l := begin(t, e, "cache")
	l.isUsed(t)
	l.losesItsServer(t, newNode(t))
	l.deletePod(t)
	l.expectEvent(t, v1alpha1.EventEphemeralDataLost)
	l.app.expect(t, "after its pod was deleted", "")
	l.app.write(t, "again")
	l.app.expect(t, "after its pod was deleted", "again")
	l.changeMemory(t)
	l.app.write(t, "and again")
	l.app.expect(t, "after the resources changed", "and again")
	l.delete(t)
}

// isUsed writes by one client and reads by others.
func (l life) isUsed(t *testing.T) {
	t.Helper()
	l.app.write(t, "value")
	l.app.expect(t, "by the command-line client", "value")
	credentials := l.credentials(t)
	l.expectDriver(t, credentials, false, "value")
	l.expectDriver(t, credentials, true, "value")
}

// isClosed looks for a way in without the password, and out of what the
// application is given. It uses the database before and after.
func (l life) isClosed(t *testing.T) {
	t.Helper()
	for _, query := range l.forbidden {
		if answer, err := l.app.tryFor(t.Context(), 0, query...); err == nil {
			t.Errorf("the application may ask for %q, and is answered %q", query, answer)
		}
	}
	credentials := l.credentials(t)
	for what, password := range map[string]string{"no": "", "a wrong": "wrong"} {
		wrong := maps.Clone(credentials)
		wrong["password"] = password
		l.app.login(t, wrong)
		if answer, err := l.app.tryFor(t.Context(), 0, l.readQuery(key)...); err == nil {
			t.Errorf("with %s password there is the answer %q", what, answer)
		}
	}
	l.app.login(t, credentials)
	l.app.expect(t, "with the right password", "value")
}

func (l life) losesItsPod(t *testing.T) {
	t.Helper()
	l.deletePod(t)
	l.app.expect(t, "after its pod was deleted", "value")
}

// losesItsServer kills the server, which is started again in the same pod.
func (l life) losesItsServer(t *testing.T, n node) {
	t.Helper()
	before := l.mustPod(t)
	begun := time.Now()
	n.kill(t, before)
	l.app.expect(t, "after its server was killed", "value")
	record(t, "kill -9 to the next answer", time.Since(begun))
	l.app.write(t, "value")
	l.expectRestarted(t, before.UID, 1)
	l.waitReady(t)
}

// expectRestarted waits until the pod says how often its container was started
// again.
func (l life) expectRestarted(t *testing.T, uid any, count int32) {
	t.Helper()
	eventually(t, patience, "a container that was started again", func(ctx context.Context) error {
		pod, err := l.pod(ctx)
		if err != nil {
			return err
		}
		if pod.UID != uid || pod.Status.ContainerStatuses[0].RestartCount != count {
			return fmt.Errorf("pod %s was restarted %d times; it should be %v, %d times", pod.UID, pod.Status.ContainerStatuses[0].RestartCount, uid, count)
		}
		return nil
	})
}

func (l life) changesResources(t *testing.T) {
	t.Helper()
	l.changeMemory(t)
	l.app.expect(t, "after the resources changed", "value")
}

// changesVersion goes from the older version to the newer and, where that was
// possible, tries to go back, which isn't. What is refused changes nothing, and
// is healed by what worked before.
func (l life) changesVersion(t *testing.T, older, newest string) {
	t.Helper()
	refused, works := older, newest
	if l.refusesNewer {
		refused, works = newest, older
	} else {
		l.changeVersion(t, newest)
	}
	l.patch(t, fmt.Sprintf(`{"spec":{"version":%q}}`, refused))
	said := message(l.waitFor(t, 3*patience, v1alpha1.ReasonDataRefused))
	if !strings.Contains(said, "Set spec.version to "+works) {
		t.Errorf("what is refused doesn't say what to do: %s", said)
	}
	l.changeVersion(t, works)
}

func (l life) changeVersion(t *testing.T, version string) {
	t.Helper()
	l.patch(t, fmt.Sprintf(`{"spec":{"version":%q}}`, version))
	if got := l.waitReady(t).Status.CurrentVersion; got != version && !strings.HasPrefix(got, version+".") {
		t.Errorf("the version is %s, want %s", got, version)
	}
	l.app.expect(t, "with version "+version, "value")
	l.app.write(t, "value")
}

// isMadeAgain deletes the database, and creates it again from what was kept. The
// client has had its password since before.
func (l life) isMadeAgain(t *testing.T) {
	t.Helper()
	credentials := l.credentials(t)
	l.delete(t, l.retained()...)
	l.create(t, durable)
	l.waitReady(t)
	if !maps.Equal(l.credentials(t), credentials) {
		t.Error("the credentials of the database that was made again differ from the kept ones")
	}
	l.app.expect(t, "after delete and create", "value")
}

// losesItsVolume deletes the claim, and with it the data. Nothing is made in
// their place before somebody says so, and that counts once.
func (l life) losesItsVolume(t *testing.T) {
	t.Helper()
	before := l.topology(t)
	pod := l.mustPod(t)
	if err := env.kube.CoreV1().PersistentVolumeClaims(l.namespace).Delete(t.Context(), "data-"+l.stem()+"-0", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the claim: %v", err)
	}
	if err := env.kube.CoreV1().Pods(l.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the pod: %v", err)
	}
	lost := l.waitFor(t, 3*patience, v1alpha1.ReasonDataLost)
	if said := message(lost); !strings.Contains(said, v1alpha1.AnnotationReinitialize+"="+before["data-id"]) {
		t.Errorf("the message doesn't name the data id %s: %s", before["data-id"], said)
	}
	l.staysLost(t)

	l.patch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationReinitialize, before["data-id"]))
	l.waitReady(t)
	l.expectEvent(t, v1alpha1.EventReinitialized)
	l.app.expect(t, "after it began again", "")
	l.app.write(t, "value")
	if after := l.topology(t); after["data-id"] == before["data-id"] || after["state"] != "initialized" {
		t.Errorf("the topology is %v, and was %v", after, before)
	}
}

// staysLost sees the member refuse once more, by itself: it isn't the first
// refusal alone that holds.
func (l life) staysLost(t *testing.T) {
	t.Helper()
	eventually(t, patience, "another refusal", func(ctx context.Context) error {
		pod, err := l.pod(ctx)
		if err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount < 2 {
			return errors.New("it hasn't tried twice")
		}
		return nil
	})
	l.waitFor(t, patience, v1alpha1.ReasonDataLost)
}

func (l life) topology(t *testing.T) map[string]string {
	t.Helper()
	config, err := env.kube.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), l.stem()+"-topology", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the topology: %v", err)
	}
	return config.Data
}

// leavesNothing lets the data go with the database, which is said while it lives.
func (l life) leavesNothing(t *testing.T) {
	t.Helper()
	l.patch(t, `{"spec":{"storage":{"retention":{"whenDeleted":"Delete"}}}}`)
	l.waitReady(t)
	claim, err := env.kube.CoreV1().PersistentVolumeClaims(l.namespace).Get(t.Context(), "data-"+l.stem()+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the claim: %v", err)
	}
	l.delete(t)
	eventually(t, patience, "the volume gone", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}
