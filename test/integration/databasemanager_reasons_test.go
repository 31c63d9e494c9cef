//go:build integration

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

// setQuota lets a namespace have only so many objects of a kind.
func setQuota(t *testing.T, namespace string, kind corev1.ResourceName, count string) {
	t.Helper()
	quotas := env.kube.CoreV1().ResourceQuotas(namespace)
	hard := corev1.ResourceList{kind: resource.MustParse(count)}
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a quota: %v", err)
	}
	await(t, "the quota counts", func(ctx context.Context) error {
		quota, err := quotas.Get(ctx, "quota", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = fmt.Errorf("its status is %v", quota.Status)
		}
		return err
	})
}

func liftQuota(t *testing.T, namespace string) {
	t.Helper()
	if err := env.kube.CoreV1().ResourceQuotas(namespace).Delete(t.Context(), "quota", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete the quota: %v", err)
	}
}

func TestAStepThatTheAPIServerRefusesIsToldAndTriedAgain(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	setQuota(t, namespace, "count/secrets", "1")
	newDatabase(t, namespace, "orders", "db")
	refused := awaitReady(t, namespace, "orders", v1alpha1.ReasonStepRefused)
	for _, part := range []string{"Secret db-admin", "exceeded quota"} {
		if !strings.Contains(refused.Message, part) {
			t.Errorf("the message doesn't say %q: %s", part, refused.Message)
		}
	}
	liftQuota(t, namespace)
	awaitUnscheduled(t, namespace, "orders")
}

func TestAPodThatIsRefusedIsTold(t *testing.T) {
	startOperator(t)
	namespace := newNamespace(t)
	setQuota(t, namespace, corev1.ResourcePods, "0")
	newDatabase(t, namespace, "orders", "db")
	refused := awaitReady(t, namespace, "orders", v1alpha1.ReasonPodRefused)
	if !strings.Contains(refused.Message, "exceeded quota") {
		t.Errorf("the message doesn't say why: %s", refused.Message)
	}
	liftQuota(t, namespace)
	// The built-in controller waits longer from time to time, and looks again
	// when the workload changes.
	changeSpec(t, namespace, withLimits("1", "1Gi"))
	awaitUnscheduled(t, namespace, "orders")
}

func TestAWorkloadOfANewerOperatorIsLeftAsItIs(t *testing.T) {
	operator := startOperator(t)
	namespace := newNamespace(t)
	newDatabase(t, namespace, "orders", "db", durable)
	awaitUnscheduled(t, namespace, "orders")
	operator.stop()
	await(t, "the StatefulSet's own controller has said all that it has to say", func(ctx context.Context) error {
		statefulSet, err := env.kube.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if status := statefulSet.Status; status.ObservedGeneration != statefulSet.Generation || status.Replicas != 1 || status.UpdatedReplicas != 1 {
			return fmt.Errorf("its status is %+v", status)
		}
		return nil
	})
	record := func(version string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationTemplateVersion, version)
		if _, err := env.kube.AppsV1().StatefulSets(namespace).Patch(t.Context(), "db", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatalf("record another version of the template: %v", err)
		}
	}
	record("999")
	before := versions(t, namespace)
	startOperator(t)
	awaitReady(t, namespace, "orders", v1alpha1.ReasonTemplateUnknown)
	changeSpec(t, namespace, withLimits("1", "1Gi"))
	awaitReady(t, namespace, "orders", v1alpha1.ReasonTemplateUnknown)
	if after := versions(t, namespace); !slices.Equal(after, before) {
		t.Errorf("children were changed from %v to %v", before, after)
	}
	record("1")
	awaitUnscheduled(t, namespace, "orders")
}

func TestASecretThatIsLostIsTold(t *testing.T) {
	startOperator(t)
	for _, name := range []string{"db-auth", "db-admin"} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			newDatabase(t, namespace, "orders", "db", durable)
			awaitUnscheduled(t, namespace, "orders")
			password, pod := secretPassword(t, namespace, name), podUID(t, namespace)
			if err := env.kube.CoreV1().Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the Secret: %v", err)
			}
			awaitEvent(t, namespace, v1alpha1.EventSecretLost)
			if secretPassword(t, namespace, name) != password || podUID(t, namespace) != pod {
				t.Error("the password or the pod is another")
			}
		})
	}
}

// TestOldObjectsThatWouldBeRefusedTodayHarmNobody stores what an API server
// without our rules once let in, and runs the operator on it.
func TestOldObjectsThatWouldBeRefusedTodayHarmNobody(t *testing.T) {
	namespace := newNamespace(t)
	t.Cleanup(func() { installDatabaseCRD(t, func(map[string]any) {}) })
	installDatabaseCRD(t, func(spec map[string]any) {
		clear(spec)
		spec["type"], spec["x-kubernetes-preserve-unknown-fields"] = "object", true
	})
	client := env.dynamic.Resource(databaseResource).Namespace(namespace)
	specs := oldSpecs()
	for name, spec := range specs {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(`{"apiVersion":"coolops.cn/v1alpha1","kind":"DatabaseManager","metadata":{"name":"` + name + `"},"spec":` + spec + `}`)); err != nil {
			t.Fatal(err)
		}
		await(t, "store "+name, func(ctx context.Context) error {
			_, err := client.Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	installDatabaseCRD(t, func(map[string]any) {})

	startOperator(t)
	newDatabase(t, namespace, "orders", "db")
	awaitUnscheduled(t, namespace, "orders")
	for name := range specs {
		await(t, "a status of "+name, func(ctx context.Context) error {
			database, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && meta.FindStatusCondition(database.Status.Conditions, v1alpha1.ConditionReady) == nil {
				err = fmt.Errorf("it is %+v", database.Status)
			}
			return err
		})
	}
}

// oldSpecs are specs that our schema refuses, by the name of their object.
func oldSpecs() map[string]string {
	return map[string]string{
		"no-replicas":     `{"deploymentName":"db-0","dbtype":"redis","replicas":0}`,
		"many-replicas":   `{"deploymentName":"db-1","dbtype":"redis","replicas":11}`,
		"unknown-engine":  `{"deploymentName":"db-3","dbtype":"oracle"}`,
		"no-engine":       `{"deploymentName":"db-4"}`,
		"no-name":         `{"deploymentName":"","dbtype":"redis"}`,
		"long-name":       `{"deploymentName":"` + strings.Repeat("x", 60) + `","dbtype":"redis"}`,
		"bad-name":        `{"deploymentName":"Bad_Name","dbtype":"redis"}`,
		"no-spec":         `{}`,
		"empty-storage":   `{"deploymentName":"db-5","dbtype":"redis","storage":{}}`,
		"negative-volume": `{"deploymentName":"db-6","dbtype":"redis","storage":{"size":"-1Gi"}}`,
		"bad-image":       `{"deploymentName":"db-7","dbtype":"redis","image":" "}`,
		"bad-label":       `{"deploymentName":"db-9","dbtype":"redis","podLabels":{"coolops.cn/stem":"db"}}`,
		"bad-selector":    `{"deploymentName":"db-10","dbtype":"redis","nodeSelector":{"a b":"c"}}`,
		"bad-toleration":  `{"deploymentName":"db-11","dbtype":"redis","tolerations":[{}]}`,
		"bad-spread":      `{"deploymentName":"db-12","dbtype":"redis","topologySpreadConstraints":[{},{}]}`,
		"bad-secrets":     `{"deploymentName":"db-14","dbtype":"redis","imagePullSecrets":[{},{}]}`,
		"bad-service":     `{"deploymentName":"db-13","dbtype":"redis","service":{"type":"ExternalName"}}`,
		"bad-peer":        `{"deploymentName":"db-8","dbtype":"redis","networkPolicy":{"from":[{}]}}`,
	}
}

// installDatabaseCRD applies our CustomResourceDefinition, with the schema of the
// spec changed.
func installDatabaseCRD(t *testing.T, change func(spec map[string]any)) {
	t.Helper()
	manifests, err := readManifests(filepath.Join(repository, "config", "crd", "coolops.cn_databasemanagers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(manifests[0].Object, "spec", "versions")
	for _, version := range versions {
		version, isMap := version.(map[string]any)
		if !isMap {
			t.Fatalf("a version is %v", version)
		}
		schema, exists, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
		if err != nil || !exists {
			t.Fatalf("there is no schema of the spec: %v", err)
		}
		change(schema)
		if err := unstructured.SetNestedMap(version, schema, "schema", "openAPIV3Schema", "properties", "spec"); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(manifests[0].Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := env.installCRD(context.WithoutCancel(t.Context()), manifests[0]); err != nil {
		t.Fatal(err)
	}
}
