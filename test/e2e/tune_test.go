//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// parameter is a parameter of an engine, a value that isn't its default, and how
// the engine shows the two.
type parameter struct{ name, value, shown, usual string }

// isUntouched fails the test if the pod isn't the one that it was, or was
// restarted.
func (l life) isUntouched(t *testing.T, before *corev1.Pod) {
	t.Helper()
	after := l.mustPod(t)
	if after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != before.Status.ContainerStatuses[0].RestartCount {
		t.Errorf("pod %s, restarted %d times, was %s, restarted %d times", after.UID, after.Status.ContainerStatuses[0].RestartCount,
			before.UID, before.Status.ContainerStatuses[0].RestartCount)
	}
}

// isRotated gives the application another password, by its own Secret, and by
// one of the user's. Nothing restarts, and the former one is refused.
func (l life) isRotated(t *testing.T) {
	t.Helper()
	before := l.mustPod(t)
	// A shell, a URI and SQL would each trip over part of it.
	first := `a'b"c\d $(reboot) %41&é#/?:@;-- ` + rand.Text()
	l.rotate(t, l.stem()+"-auth", first)
	if err := env.kube.CoreV1().Secrets(l.namespace).Delete(t.Context(), l.stem()+"-auth", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the Secret: %v", err)
	}
	l.hasPassword(t, first)

	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{v1alpha1.LabelCredentials: v1alpha1.CredentialsValue}},
		StringData: map[string]string{"password": rand.Text()},
	}
	if _, err := env.kube.CoreV1().Secrets(l.namespace).Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a Secret of the user's: %v", err)
	}
	l.patch(t, `{"spec":{"auth":{"secretName":"mine"}}}`)
	l.hasPassword(t, own.StringData["password"])
	l.rotate(t, "mine", rand.Text())
	l.patch(t, `{"spec":{"auth":null}}`)
	l.waitReady(t)
	l.isRefusedAPassword(t)
	l.isUntouched(t, before)
}

// rotate writes a password into a Secret, and expects it to be the database's
// within a minute.
func (l life) rotate(t *testing.T, secret, password string) {
	t.Helper()
	old := l.credentials(t)
	patch, err := json.Marshal(map[string]any{"stringData": map[string]string{"password": password}})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := env.kube.CoreV1().Secrets(l.namespace).Patch(t.Context(), secret, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("write a password into Secret %s: %v", secret, err)
	}
	l.hasPassword(t, password)
	took := time.Since(begun)
	record(t, "a changed password is the database's, "+string(l.engine.name), took)
	if took > time.Minute {
		t.Errorf("it took %s", took)
	}
	l.app.login(t, old)
	if answer, err := l.app.tryFor(t.Context(), 0, l.readQuery(key)...); err == nil {
		t.Errorf("with the former password there is the answer %q", answer)
	}
	l.app.login(t, l.credentials(t))
	l.app.expect(t, "with the new password", "value")
	l.expectDriver(t, l.credentials(t), true, "value")
}

// hasPassword waits until the Secret says the password, and the database takes it.
func (l life) hasPassword(t *testing.T, password string) {
	t.Helper()
	eventually(t, patience, "the application's Secret", func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(l.namespace).Get(ctx, l.stem()+"-auth", metav1.GetOptions{})
		if err == nil && string(secret.Data["password"]) != password {
			err = errors.New("it has another password")
		}
		return err
	})
	l.app.login(t, l.credentials(t))
	l.app.read(t)
}

// isRefusedAPassword gives the application one that the engine can't be told,
// and takes it back.
func (l life) isRefusedAPassword(t *testing.T) {
	t.Helper()
	if l.badPassword == "" {
		return
	}
	former := l.credentials(t)
	for _, password := range []string{l.badPassword, former["password"]} {
		patch, err := json.Marshal(map[string]any{"data": map[string][]byte{"password": []byte(password)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := env.kube.CoreV1().Secrets(l.namespace).Patch(t.Context(), l.stem()+"-auth", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatalf("write a password: %v", err)
		}
		wanted := v1alpha1.ReasonPasswordRefused
		if password != l.badPassword {
			wanted = v1alpha1.ReasonAsExpected
		}
		l.saysDegraded(t, wanted, "")
		l.app.expect(t, "with the former password", "value")
	}
}

// saysDegraded waits until Degraded has the reason, and the text in its message.
func (l life) saysDegraded(t *testing.T, reason, text string) {
	t.Helper()
	eventually(t, patience, "Degraded with "+reason, func(ctx context.Context) error {
		stored, err := l.get(ctx)
		if err != nil {
			return err
		}
		degraded := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionDegraded)
		if degraded.Reason != reason || !strings.Contains(degraded.Message, text) {
			return fmt.Errorf("it is %+v", degraded)
		}
		return nil
	})
}

// isTuned sets one parameter that a running server takes and one that it doesn't,
// and takes them back.
func (l life) isTuned(t *testing.T, n node) {
	t.Helper()
	before := l.mustPod(t)
	begun := time.Now()
	l.configure(t, l.live)
	l.shows(t, l.live.name, l.live.shown)
	record(t, "a live parameter is in effect, "+string(l.engine.name), time.Since(begun))
	l.saysInEffect(t, l.live.name, v1alpha1.ParameterChangeLive)
	l.isUntouched(t, before)
	n.kill(t, before)
	l.expectRestarted(t, before.UID, before.Status.ContainerStatuses[0].RestartCount+1)
	l.waitReady(t)
	l.shows(t, l.live.name, l.live.shown)

	l.configure(t, l.live, l.fixed)
	l.waitReplaced(t, before.UID)
	l.waitReady(t)
	l.shows(t, l.fixed.name, l.fixed.shown)
	l.shows(t, l.live.name, l.live.shown)
	l.saysInEffect(t, l.fixed.name, v1alpha1.ParameterChangeRestart)
	l.app.expect(t, "with other parameters", "value")

	running := l.mustPod(t)
	l.patch(t, `{"spec":{"config":{"no_such_parameter":"1"}}}`)
	if said := message(l.waitFor(t, patience, v1alpha1.ReasonInvalidSpec)); !strings.Contains(said, "no_such_parameter") {
		t.Errorf("it isn't said what isn't allowed: %s", said)
	}
	l.isUntouched(t, running)

	l.patch(t, `{"spec":{"config":null}}`)
	l.waitReplaced(t, running.UID)
	l.waitReady(t)
	l.shows(t, l.fixed.name, l.fixed.usual)
	l.shows(t, l.live.name, l.live.usual)
	l.app.expect(t, "with the usual parameters", "value")
}

func (l life) configure(t *testing.T, parameters ...parameter) {
	t.Helper()
	config := map[string]string{}
	for _, parameter := range parameters {
		config[parameter.name] = parameter.value
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"config": config}})
	if err != nil {
		t.Fatal(err)
	}
	l.patch(t, string(patch))
}

// shows waits until the server itself shows the value.
func (l life) shows(t *testing.T, name, value string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%s to be %s", name, value), func(ctx context.Context) error {
		pod, err := l.pod(ctx)
		if err != nil {
			return err
		}
		got, err := execute(ctx, l.namespace, pod.Name, nil, "sh", "-c", l.settingScript, "setting", name)
		if err == nil && got != value {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

func (l life) saysInEffect(t *testing.T, name string, change v1alpha1.ParameterChange) {
	t.Helper()
	eventually(t, patience, "the status of "+name, func(ctx context.Context) error {
		stored, err := l.get(ctx)
		if err != nil {
			return err
		}
		if want := (v1alpha1.ParameterStatus{Name: name, Change: change, InEffect: true}); !slices.Contains(stored.Status.Config, want) {
			return fmt.Errorf("the status says %+v", stored.Status.Config)
		}
		return nil
	})
}

// isShutDown is away for a while, under a retention that would delete its volume
// together with it.
func (l life) isShutDown(t *testing.T) {
	t.Helper()
	before := l.credentials(t)
	l.patch(t, `{"spec":{"shutdown":true,"storage":{"retention":{"whenDeleted":"Delete"}}}}`)
	l.waitFor(t, 3*patience, v1alpha1.ReasonShutDown)
	eventually(t, 3*patience, "no pod", func(ctx context.Context) error {
		pods, err := env.kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelStem + "=" + l.stem()})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
	l.patch(t, `{"spec":{"shutdown":null,"storage":{"retention":null}}}`)
	l.waitReady(t)
	if !maps.Equal(l.credentials(t), before) {
		t.Error("the credentials changed meanwhile")
	}
	l.app.expect(t, "after a shutdown", "value")
}

// withSize asks for a volume that really has a size.
func withSize(size string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Storage = &v1alpha1.StorageSpec{Size: resource.MustParse(size), StorageClassName: new("sized")}
	}
}

// TestAFullVolumeGrowsWhileTheServerCrashes fills a volume, has the server end
// for it, and gives it a larger one.
func TestAFullVolumeGrowsWhileTheServerCrashes(t *testing.T) {
	t.Parallel()
	for _, e := range enginesOnce() {
		t.Run(string(e.name), func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			l := begin(t, e, "orders", withSize("512Mi"))
			l.isUsed(t)
			pod := l.mustPod(t)
			if _, err := execute(t.Context(), l.namespace, pod.Name, nil, "sh", "-c", `dd if=/dev/zero of=/data/fill bs=1M 2>/dev/null; [ "$(df --output=avail /data | tail -n 1)" -lt 1024 ]`); err != nil {
				t.Fatalf("fill the volume: %v", err)
			}
			n.kill(t, pod)
			l.patch(t, `{"spec":{"storage":{"size":"1Gi"}}}`)
			eventually(t, 3*patience, "a larger volume", func(ctx context.Context) error {
				claim, err := env.kube.CoreV1().PersistentVolumeClaims(l.namespace).Get(ctx, "data-"+l.stem()+"-0", metav1.GetOptions{})
				if err == nil && claim.Status.Capacity.Storage().Cmp(resource.MustParse("1Gi")) < 0 {
					err = fmt.Errorf("it has %s", claim.Status.Capacity.Storage())
				}
				return err
			})
			l.waitReady(t)
			l.app.expect(t, "with a larger volume", "value")
			l.app.write(t, "more")
			l.app.expect(t, "with a larger volume", "more")
			if after := l.mustPod(t); after.UID != pod.UID {
				t.Errorf("the pod is %s, and was %s", after.UID, pod.UID)
			}
			l.hasTemplateSize(t, "1Gi")
		})
	}
}

// hasTemplateSize waits until the StatefulSet would make claims of the size.
func (l life) hasTemplateSize(t *testing.T, size string) {
	t.Helper()
	eventually(t, patience, "a StatefulSet with claims of "+size, func(ctx context.Context) error {
		set, err := env.kube.AppsV1().StatefulSets(l.namespace).Get(ctx, l.stem(), metav1.GetOptions{})
		if err == nil && set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String() != size {
			err = fmt.Errorf("it makes claims of %s", set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage())
		}
		return err
	})
}

// TestAClassThatCantGrowIsTold asks for a larger volume, and for something else,
// which is carried out.
func TestAClassThatCantGrowIsTold(t *testing.T) {
	t.Parallel()
	l := begin(t, anyEngine(), "orders", durable)
	before := l.mustPod(t)
	l.patch(t, `{"spec":{"storage":{"size":"2Gi"},"resources":{"limits":{"memory":"300Mi"}}}}`)
	l.waitReplaced(t, before.UID)
	l.waitReady(t)
	l.saysDegraded(t, v1alpha1.ReasonExpansionRefused, "only dynamically provisioned pvc can be resized")
	if _, err := l.client().Patch(t.Context(), l.name, types.MergePatchType, []byte(`{"spec":{"storage":{"size":"1Gi"}}}`), metav1.PatchOptions{}); err == nil {
		t.Error("the size can be set back, though no volume shrinks")
	}
}

// TestAVolumeThatIsBeingGrownIsTold asks for a larger volume of a class that
// allows it, and that nobody grows.
func TestAVolumeThatIsBeingGrownIsTold(t *testing.T) {
	t.Parallel()
	classes := env.kube.StorageV1().StorageClasses()
	standard, err := classes.Get(t.Context(), "standard", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the default class: %v", err)
	}
	slow, err := classes.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "slow-"},
		Provisioner: standard.Provisioner, VolumeBindingMode: standard.VolumeBindingMode, ReclaimPolicy: standard.ReclaimPolicy,
		Parameters: standard.Parameters, AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a class: %v", err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.WithoutCancel(t.Context()), slow.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the class: %v", err)
		}
	})
	l := begin(t, anyEngine(), "orders", withClass(slow.Name))
	l.isUsed(t)
	before := l.mustPod(t)
	l.patch(t, `{"spec":{"storage":{"size":"2Gi"}}}`)
	stored := l.waitFor(t, patience, v1alpha1.ReasonVolumeGrowing)
	if !meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionDegraded) {
		t.Errorf("the conditions are %+v", stored.Status.Conditions)
	}
	l.hasTemplateSize(t, "2Gi")
	l.waitFor(t, patience, v1alpha1.ReasonVolumeGrowing)
	l.app.expect(t, "while the volume grows", "value")
	l.isUntouched(t, before)
}
