//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// awaitBesides waits until Degraded says the text besides what the member, which
// no node takes, suffers from.
func awaitBesides(t *testing.T, namespace, text string) {
	t.Helper()
	await(t, "Degraded says "+text, func(ctx context.Context) error {
		database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		degraded := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionDegraded)
		if degraded == nil || degraded.Reason != v1alpha1.ReasonPodUnschedulable || !strings.Contains(degraded.Message, "Besides: ") || !strings.Contains(degraded.Message, text) {
			return fmt.Errorf("it is %+v, wanted is %q", degraded, text)
		}
		return nil
	})
}

// awaitPassword waits until the database's own Secret has the password, in the
// URI, too.
func awaitPassword(t *testing.T, namespace, password string) {
	t.Helper()
	await(t, "Secret db-auth has the password", func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(namespace).Get(ctx, "db-auth", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := string(secret.Data["password"]); got != password {
			return fmt.Errorf("it has one of %d bytes, wanted are %d", len(got), len(password))
		}
		if !strings.Contains(string(secret.Data["uri"]), ":"+password+"@") {
			return errors.New("its URI has another one")
		}
		return nil
	})
}

func patchSecret(t *testing.T, namespace, name, patch string) {
	t.Helper()
	if _, err := env.kube.CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("patch Secret %s: %v", name, err)
	}
}

// TestTheUsersOwnSecretIsFollowed leads one through all that can become of it.
func TestTheUsersOwnSecretIsFollowed(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable, func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Auth = &v1alpha1.AuthSpec{SecretName: "mine"}
	})
	awaitReady(t, namespace, "orders", v1alpha1.ReasonSecretMissing)
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, StringData: map[string]string{"password": "theirs-1"}}
	if _, err := env.kube.CoreV1().Secrets(namespace).Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitWithin(t, time.Minute, "it is said that the label is missing", func(ctx context.Context) error {
		database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, "orders", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != v1alpha1.ReasonSecretNotLabelled || !strings.Contains(ready.Message, "kubectl label secret mine coolops.cn/credentials=true") {
			return fmt.Errorf("it says %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	if found := children(t, namespace); len(found) > 0 {
		t.Errorf("without a password there are already %v", childNames(found))
	}
	patchSecret(t, namespace, "mine", `{"metadata":{"labels":{"coolops.cn/credentials":"true"}}}`)
	awaitPassword(t, namespace, "theirs-1")
	awaitUnscheduled(t, namespace, "orders")

	patchSecret(t, namespace, "mine", `{"stringData":{"password":"theirs-2"}}`)
	awaitPassword(t, namespace, "theirs-2")
	patchSecret(t, namespace, "db-auth", `{"stringData":{"password":"somebody-elses"}}`)
	awaitPassword(t, namespace, "theirs-2")

	// What can't be read changes nothing.
	patchSecret(t, namespace, "mine", `{"stringData":{"password":""}}`)
	awaitBesides(t, namespace, "Secret mine has")
	awaitPassword(t, namespace, "theirs-2")
	if err := env.kube.CoreV1().Secrets(namespace).Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitBesides(t, namespace, "Secret mine, which spec.auth.secretName names, isn't there")
	awaitPassword(t, namespace, "theirs-2")
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Auth = nil })
	awaitUnscheduled(t, namespace, "orders")
	awaitPassword(t, namespace, "theirs-2")
}

// TestNothingIsChangedWhileSuspended takes the hands off, and puts them on again.
func TestNothingIsChangedWhileSuspended(t *testing.T) {
	operator := startOperator(t)
	empty := newNamespace(t)
	newDatabase(t, empty, "orders", "db", durable, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Suspend = true })
	awaitReady(t, empty, "orders", v1alpha1.ReasonSuspended)
	if found := children(t, empty); len(found) > 0 {
		t.Errorf("there are already %v", childNames(found))
	}
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Suspend = true })
	awaitObserved(t, namespace)
	if err := env.kube.CoreV1().Services(namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	changeSpec(t, namespace, withLimits("1", "1Gi"))
	awaitObserved(t, namespace)
	operator.requests.awaitQuiet(t, time.Second)
	if _, err := env.kube.CoreV1().Services(namespace).Get(t.Context(), "db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service is back while spec.suspend is set (%v)", err)
	}
	before, err := env.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil || before.Generation != 1 {
		t.Fatalf("the StatefulSet has generation %d (%v)", before.Generation, err)
	}
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Suspend = false })
	await(t, "all is as the spec says", func(ctx context.Context) error {
		_, err := env.kube.CoreV1().Services(namespace).Get(ctx, "db", metav1.GetOptions{})
		after, setErr := env.kube.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
		if setErr == nil && after.Generation == before.Generation {
			setErr = errors.New("the StatefulSet is as it was")
		}
		return errors.Join(err, setErr)
	})
}

// TestAShutdownRunsNothingAndKeepsTheClaims shuts down a database that is sick,
// under a retention that would delete its volume together with it.
func TestAShutdownRunsNothingAndKeepsTheClaims(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable, func(spec *v1alpha1.DatabaseManagerSpec) {
		spec.Storage.Retention = &v1alpha1.StorageRetention{WhenDeleted: v1alpha1.RetentionPolicyDelete}
	})
	awaitUnscheduled(t, namespace, "orders")
	claims := env.kube.CoreV1().PersistentVolumeClaims(namespace)
	before, err := claims.Get(t.Context(), "data-db-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Shutdown = true })
	awaitReady(t, namespace, "orders", v1alpha1.ReasonShutDown)
	await(t, "no pod is left", func(ctx context.Context) error {
		pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) { spec.Shutdown = false })
	awaitUnscheduled(t, namespace, "orders")
	after, err := claims.Get(t.Context(), "data-db-0", metav1.GetOptions{})
	if err != nil || after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("the claim is %v (%v), it was %v", after.UID, err, before.UID)
	}
}

// newClass makes a StorageClass without a provisioner.
func newClass(t *testing.T, canGrow bool) string {
	t.Helper()
	class, err := env.kube.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "grows-"}, Provisioner: "example.com/by-hand", AllowVolumeExpansion: &canGrow,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.kube.StorageV1().StorageClasses().Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the class: %v", err)
		}
	})
	return class.Name
}

// bind does what a provisioner would: it makes a volume for the claim, and binds
// the two.
func bind(t *testing.T, namespace string) {
	t.Helper()
	var claim *corev1.PersistentVolumeClaim
	await(t, "the claim is there", func(ctx context.Context) error {
		var err error
		claim, err = env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
		return err
	})
	volume, err := env.kube.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, StorageClassName: *claim.Spec.StorageClassName,
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.kube.CoreV1().PersistentVolumes().Delete(context.WithoutCancel(t.Context()), volume.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the volume: %v", err)
		}
	})
	await(t, "the claim is bound", func(ctx context.Context) error {
		bound, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err == nil && bound.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("it is %s", bound.Status.Phase)
		}
		return err
	})
}

func withClass(name string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) { spec.Storage.StorageClassName = &name }
}

func withSize(size string) func(*v1alpha1.DatabaseManagerSpec) {
	return func(spec *v1alpha1.DatabaseManagerSpec) { spec.Storage.Size = resource.MustParse(size) }
}

// TestAVolumeGrowsAndTheStatefulSetFollows grows the claim of a member that
// isn't ready, and has the StatefulSet replaced without its pod.
func TestAVolumeGrowsAndTheStatefulSetFollows(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable, withClass(newClass(t, true)), withSize("1Gi"))
	bind(t, namespace)
	awaitUnscheduled(t, namespace, "orders")
	pod, set := podUID(t, namespace), versionsOfSet(t, namespace)
	changeSpec(t, namespace, withSize("2Gi"))
	await(t, "claim and StatefulSet have the size", func(ctx context.Context) error {
		claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		after, err := env.kube.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		asked, makes := claim.Spec.Resources.Requests.Storage().String(), after.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
		if asked != "2Gi" || makes != "2Gi" || after.UID == set {
			return fmt.Errorf("the claim asks for %s, the StatefulSet %s makes claims of %s", asked, after.UID, makes)
		}
		return nil
	})
	await(t, "the pod has another owner", func(ctx context.Context) error {
		now, err := env.kube.CoreV1().Pods(namespace).Get(ctx, "db-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(now); owner == nil || owner.UID == set || now.UID != pod {
			return fmt.Errorf("pod %s, which was %s, is owned by %v", now.UID, pod, owner)
		}
		return nil
	})
}

func versionsOfSet(t *testing.T, namespace string) types.UID {
	t.Helper()
	set, err := env.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set.UID
}

// TestAClassThatRefusesGrowthHoldsNothingElseUp changes two things at once.
func TestAClassThatRefusesGrowthHoldsNothingElseUp(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable, withClass(newClass(t, false)), withSize("1Gi"))
	bind(t, namespace)
	awaitUnscheduled(t, namespace, "orders")
	pod := podUID(t, namespace)
	changeSpec(t, namespace, func(spec *v1alpha1.DatabaseManagerSpec) {
		withSize("2Gi")(spec)
		withLimits("1", "1Gi")(spec)
	})
	await(t, "the pod is replaced", func(ctx context.Context) error {
		now, err := env.kube.CoreV1().Pods(namespace).Get(ctx, "db-0", metav1.GetOptions{})
		if err == nil && now.UID == pod {
			err = errors.New("it is the same one")
		}
		return err
	})
	awaitBesides(t, namespace, "The volume can't grow to 2Gi: ")
	awaitBesides(t, namespace, "only dynamically provisioned pvc can be resized")
	operator.requests.awaitQuiet(t, 2*time.Second)
	refused := 0
	for _, request := range operator.requests.about(namespace, true) {
		if strings.Contains(request, "persistentvolumeclaims") && strings.HasPrefix(request, "PATCH") {
			refused++
		}
	}
	if refused == 0 || refused > 20 {
		t.Errorf("the claim was patched %d times", refused)
	}
}

// TestAConfigurationThatTheServerRefusesIsTold has a kubelet, by hand, say how
// the boot script of a member ended.
func TestAConfigurationThatTheServerRefusesIsTold(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	pods := env.kube.CoreV1().Pods(namespace)
	// By hand, too, since there is no node; until then the scheduler says that.
	err := pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("give the pod a node: %v", err)
	}
	const sentence = "The server doesn't take its configuration: unknown variable 'a'"
	status := `{"status":{"phase":"Running","containerStatuses":[{"name":"database","image":"redis","imageID":"redis",` +
		`"ready":false,"started":false,"restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":78,"message":"` + sentence + `"}}}]}}`
	if _, err := pods.Patch(t.Context(), "db-0", types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("write the pod's status: %v", err)
	}
	if ready := awaitReady(t, namespace, "orders", v1alpha1.ReasonConfigRefused); !strings.Contains(ready.Message, sentence) {
		t.Errorf("it says %s", ready.Message)
	}
	before := podUID(t, namespace)
	changeSpec(t, namespace, withLimits("1", "1Gi"))
	await(t, "another spec has the member replaced", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "db-0", metav1.GetOptions{})
		if err == nil && pod.DeletionTimestamp != nil {
			// Its kubelet would, once the container has stopped.
			err = pods.Delete(ctx, "db-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if now := podUID(t, namespace); now == "" || now == before {
			return fmt.Errorf("the pod is %s, and was %s", now, before)
		}
		return nil
	})
}
