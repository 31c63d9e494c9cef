//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// foreign makes an object that isn't ours, of a child's name.
func foreign(t *testing.T, namespace, kind, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(manifest)); err != nil {
		t.Fatalf("read the manifest: %v", err)
	}
	created, err := env.dynamic.Resource(childResources[kind]).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a foreign %s: %v", kind, err)
	}
	return created
}

func TestAForeignObjectOfAChildsNameIsLeftAloneAndNamed(t *testing.T) {
	operator := startOperator(t)
	pod := `"selector":{"matchLabels":{"a":"b"}},"replicas":0,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	for name, row := range map[string]struct {
		kind, manifest string
		option         func(*v1alpha1.DatabaseManagerSpec)
	}{
		"Service db":         {"Service", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db"},"spec":{"ports":[{"port":80}]}}`, durable},
		"Service db-members": {"Service", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db-members"},"spec":{"ports":[{"port":80}]}}`, durable},
		"Secret db-auth":     {"Secret", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db-auth"},"stringData":{"password":"theirs"}}`, durable},
		"Secret db-admin":    {"Secret", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db-admin","labels":{"coolops.cn/stem":"db","coolops.cn/engine":"redis"}}}`, durable},
		"StatefulSet db":     {"StatefulSet", `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"serviceName":"x",` + pod + `}}`, durable},
		"Deployment db":      {"Deployment", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"db"},"spec":{` + pod + `}}`, func(*v1alpha1.DatabaseManagerSpec) {}},
		"PersistentVolumeClaim data-db-0": {"PersistentVolumeClaim", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data-db-0"},` +
			`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, durable},
		"Service db with a forged owner": {"Service", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db","labels":{"app.kubernetes.io/managed-by":"database-manager","coolops.cn/stem":"db"},` +
			`"ownerReferences":[{"apiVersion":"coolops.cn/v1alpha1","kind":"DatabaseManager","name":"forged","uid":"11111111-1111-1111-1111-111111111111","controller":true}]},"spec":{"ports":[{"port":80}]}}`, durable},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			if strings.Contains(name, "forged") {
				// The garbage collector removes what names an owner that doesn't exist.
				forgedOwner := newDatabase(t, namespace, "forged", "other")
				row.manifest = strings.Replace(row.manifest, "11111111-1111-1111-1111-111111111111", string(forgedOwner.UID), 1)
			}
			before := foreign(t, namespace, row.kind, row.manifest)
			newDatabase(t, namespace, "orders", "db", row.option)
			ready := awaitReady(t, namespace, "orders", v1alpha1.ReasonConflict)
			if object := row.kind + " " + before.GetName(); !strings.Contains(ready.Message, object) {
				t.Errorf("the message doesn't name %s: %s", object, ready.Message)
			}
			operator.requests.awaitQuiet(t, time.Second)
			after, err := env.dynamic.Resource(childResources[row.kind]).Namespace(namespace).Get(t.Context(), before.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatalf("read the foreign object: %v", err)
			}
			if row.kind != "StatefulSet" && row.kind != "Deployment" && after.GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("it was written: %v, was %v", after.Object, before.Object)
			}
			isSame := reflect.DeepEqual(after.Object["spec"], before.Object["spec"]) && reflect.DeepEqual(after.Object["data"], before.Object["data"]) &&
				reflect.DeepEqual(after.GetLabels(), before.GetLabels()) && reflect.DeepEqual(after.GetOwnerReferences(), before.GetOwnerReferences())
			if !isSame {
				t.Errorf("it was changed: %v, was %v", after.Object, before.Object)
			}
			if row.kind == "PersistentVolumeClaim" {
				if _, err := env.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("the workload that would mount it was made: %v", err)
				}
			}
		})
	}
}

func TestADatabaseGoesOnWhenTheForeignObjectIsGone(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	foreign(t, namespace, "Service", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db"},"spec":{"ports":[{"port":80}]}}`)
	newDatabase(t, namespace, "orders", "db")
	awaitReady(t, namespace, "orders", v1alpha1.ReasonConflict)
	if err := env.kube.CoreV1().Services(namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the foreign Service: %v", err)
	}
	// A change of the spec is looked at at once; by itself it takes 30 s.
	changeSpec(t, namespace, withLimits("1", "1Gi"))
	awaitUnscheduled(t, namespace, "orders")
}

func TestASecondDatabaseWithTheSameStemWaits(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "first", "db", durable)
	awaitUnscheduled(t, namespace, "first")
	before := children(t, namespace)
	newDatabase(t, namespace, "second", "db", durable)
	ready := awaitReady(t, namespace, "second", v1alpha1.ReasonConflict)
	if !strings.Contains(ready.Message, "DatabaseManager first") {
		t.Errorf("the message doesn't say whose it is: %s", ready.Message)
	}
	databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
	if err := databases.Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the second: %v", err)
	}
	awaitUnscheduled(t, namespace, "first")
	after := children(t, namespace)
	for name, child := range before {
		if again := after[name]; again == nil || again.GetUID() != child.GetUID() {
			t.Errorf("%s of the first was lost with the second", name)
		}
	}
}

// deleteDatabase deletes a database, and waits until what it owned is collected.
func deleteDatabase(t *testing.T, namespace, name string, retained ...string) {
	t.Helper()
	if err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
	awaitWithin(t, collection, "the children are collected", func(context.Context) error {
		if left := childNames(children(t, namespace)); !slices.Equal(left, retained) {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

var retainedChildren = []string{"ConfigMap db-topology", "PersistentVolumeClaim data-db-0", "Secret db-admin", "Secret db-auth"}

func TestWhatADatabaseLeavesBehindIsAdoptedByTheNext(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	first := newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	password := secretPassword(t, namespace, "db-auth")
	before := children(t, namespace)
	deleteDatabase(t, namespace, "orders", retainedChildren...)

	operator.stop()
	second := newDatabase(t, namespace, "orders", "db", durable)
	startOperator(t)
	awaitUnscheduled(t, namespace, "orders")
	after := children(t, namespace)
	for _, name := range retainedChildren {
		if after[name] == nil || after[name].GetUID() != before[name].GetUID() {
			t.Errorf("%s is another one", name)
			continue
		}
		labels := after[name].GetLabels()
		if labels[v1alpha1.LabelOwnerUID] != string(second.UID) || labels[v1alpha1.LabelDataID] != string(first.UID) {
			t.Errorf("%s has the labels %v, want the new owner and the old data id", name, labels)
		}
	}
	if again := secretPassword(t, namespace, "db-auth"); again != password {
		t.Error("the password isn't the one that opens the volume")
	}
}

// leftBehind is a claim as an earlier database would have left it.
func leftBehind(t *testing.T, namespace, engine, owner string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelStem: "db", v1alpha1.LabelEngine: engine,
			v1alpha1.LabelOwnerUID: owner, v1alpha1.LabelDataID: "a-data-set",
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a claim: %v", err)
	}
	return claim
}

func TestAClaimThatWasLeftBehindIsAdoptedOnlyIfItFits(t *testing.T) {
	startOperator(t)
	for sentence, row := range map[string]struct {
		engine  string
		isAlive bool
		reason  string
	}{
		"it is adopted if it fits and its owner is gone": {"redis", false, ""},
		"it is refused if it is another engine's":        {"mysql", false, v1alpha1.ReasonRetainedDataMismatch},
		"it is refused while its owner lives":            {"redis", true, v1alpha1.ReasonConflict},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			owner := "11111111-1111-1111-1111-111111111111"
			if row.isAlive {
				owner = string(newDatabase(t, namespace, "former", "elsewhere").UID)
			}
			before := leftBehind(t, namespace, row.engine, owner)
			database := newDatabase(t, namespace, "orders", "db", durable)
			if row.reason != "" {
				awaitReady(t, namespace, "orders", row.reason)
				after := children(t, namespace)["PersistentVolumeClaim data-db-0"]
				if fmt.Sprint(after.GetLabels()) != fmt.Sprint(before.Labels) || children(t, namespace)["StatefulSet db"] != nil {
					t.Errorf("the claim was touched, or is mounted: %v", after.GetLabels())
				}
				return
			}
			awaitUnscheduled(t, namespace, "orders")
			for _, name := range retainedChildren {
				labels := children(t, namespace)[name].GetLabels()
				if labels[v1alpha1.LabelOwnerUID] != string(database.UID) || labels[v1alpha1.LabelDataID] != "a-data-set" {
					t.Errorf("%s has the labels %v, want the owner %s and the data id of the claim", name, labels, database.UID)
				}
			}
		})
	}
}

func TestADatabaseThatWasDeletedWhileTheOperatorWasDownIsGone(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db")
	awaitUnscheduled(t, namespace, "orders")
	operator.stop()
	deleteDatabase(t, namespace, "orders")
	again := startOperator(t)
	again.requests.awaitQuiet(t, time.Second)
	if writes := again.requests.about(namespace, true); len(writes) > 0 {
		t.Errorf("the operator wrote for a database that is gone: %v", writes)
	}
}

// aLookLasts is for longer than what was seen live is relied on.
const aLookLasts = 1100 * time.Millisecond

func TestNothingIsMadeForADatabaseThatHasJustBeenDeleted(t *testing.T) {
	for sentence, nth := range map[string]int32{
		"before its first child":                1,
		"before its claim is taken":             2,
		"before the first object that stays":    3,
		"between two objects that would remain": 4,
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			databases := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace)
			var looks atomic.Int32
			var mu sync.Mutex
			var writes []string
			operator := startOperator(t, func(request *http.Request) {
				path := request.URL.Path
				isLook := request.Method == http.MethodGet && strings.HasSuffix(path, namespace+"/databasemanagers/orders")
				if isLook && looks.Add(1) == nth {
					// It goes behind the back of the cache, at the last moment.
					if err := databases.Delete(context.Background(), "orders", metav1.DeleteOptions{}); err != nil {
						t.Errorf("delete the database: %v", err)
					}
					return
				}
				if request.Method == http.MethodPost || strings.Contains(path, "/persistentvolumeclaims/") {
					<-time.After(aLookLasts) // the next object needs a look of its own
				}
				if request.Method == http.MethodPost && looks.Load() >= nth && strings.Contains(path, "/api/v1/namespaces/"+namespace) {
					mu.Lock()
					writes = append(writes, path)
					mu.Unlock()
				}
			})
			newDatabase(t, namespace, "orders", "db", durable)
			await(t, "it is deleted", func(context.Context) error {
				if looks.Load() < nth {
					return fmt.Errorf("it was looked for %d times", looks.Load())
				}
				return nil
			})
			operator.requests.awaitQuiet(t, time.Second)
			mu.Lock()
			defer mu.Unlock()
			if len(writes) > 0 {
				t.Errorf("made for a database that is gone: %v", writes)
			}
		})
	}
}

func TestASecretWithoutAPasswordIsNotOverwritten(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	secrets := env.kube.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), "db-auth", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the Secret: %v", err)
	}
	delete(secret.Data, "password")
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("take the password out: %v", err)
	}
	awaitReady(t, namespace, "orders", v1alpha1.ReasonSecretMissing)
	if secretPassword(t, namespace, "db-auth") != "" {
		t.Error("a password was made that the engine doesn't know")
	}
}

func TestASecretThatIsLostWithTheOperatorDownIsMadeAnewAndTheMemberRestarted(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	before, pod := secretPassword(t, namespace, "db-admin"), podUID(t, namespace)
	operator.stop()
	if err := env.kube.CoreV1().Secrets(namespace).Delete(t.Context(), "db-admin", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the Secret: %v", err)
	}
	// The API server tells times to the second: the Secret has to be newer.
	awaitNextSecond(t)
	startOperator(t)
	await(t, "another password and another pod", func(ctx context.Context) error {
		secret, err := env.kube.CoreV1().Secrets(namespace).Get(ctx, "db-admin", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if string(secret.Data["password"]) == before || len(secret.Data["password"]) == 0 {
			return errors.New("it has no other password")
		}
		if uid := podUID(t, namespace); uid == pod || uid == "" {
			return fmt.Errorf("the pod is %q, was %q", uid, pod)
		}
		return nil
	})
}

// awaitNextSecond waits until the clock shows another second.
func awaitNextSecond(t *testing.T) {
	t.Helper()
	begun := time.Now().Unix()
	await(t, "the next second", func(context.Context) error {
		if time.Now().Unix() == begun {
			return errors.New("it is still the same")
		}
		return nil
	})
}

func TestAPodThatOnlyLooksLikeAMemberIsTold(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db")
	awaitUnscheduled(t, namespace, "orders")
	pods := env.kube.CoreV1().Pods(namespace)
	impostor, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "impostor", Labels: map[string]string{
			v1alpha1.LabelComponent: v1alpha1.ComponentDatabase, v1alpha1.LabelStem: "db",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ready := awaitReady(t, namespace, "orders", v1alpha1.ReasonConflict); !strings.Contains(ready.Message, "Pod impostor isn't a member") {
		t.Errorf("Ready says %q", ready.Message)
	}
	if err := pods.Delete(t.Context(), impostor.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	awaitUnscheduled(t, namespace, "orders")
}

func TestATopologyThatCantBeReadChangesNothing(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	configMaps := env.kube.CoreV1().ConfigMaps(namespace)
	patch := func(data string) {
		t.Helper()
		if _, err := configMaps.Patch(t.Context(), "db-topology", types.MergePatchType, []byte(data), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"data": {"epoch": "first"}}`)
	if ready := awaitReady(t, namespace, "orders", v1alpha1.ReasonTopologyUnreadable); !strings.Contains(ready.Message, "ConfigMap db-topology") {
		t.Errorf("Ready says %q", ready.Message)
	}
	if err := env.kube.CoreV1().Services(namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	patch(`{"data": {"epoch": "1"}}`)
	awaitUnscheduled(t, namespace, "orders")
	eventually(t, "the Service is back", func(ctx context.Context) bool {
		_, err := env.kube.CoreV1().Services(namespace).Get(ctx, "db", metav1.GetOptions{})
		return err == nil
	})
}
