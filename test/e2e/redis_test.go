//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestRedisWithoutStorageServesAgainAfterItsPodIsDeleted(t *testing.T) {
	t.Parallel()
	d := database{namespace: newNamespace(t), name: "cache"}
	d.create(t, nil)
	ready := d.waitReady(t)
	app := newClient(t, d.namespace, ready.Status.SecretName)
	if got := app.mustRedis(t, "set", "key", "value"); got != "OK" {
		t.Fatalf("set: got %q, want OK", got)
	}

	d.deletePod(t)
	if got := app.mustRedis(t, "get", "key"); got != "" {
		t.Errorf("a new pod without storage has the old data: %q", got)
	}
	app.mustRedis(t, "set", "key", "again")

	d.changeMemory(t, "96Mi")
	app.mustRedis(t, "set", "key", "and again")

	d.delete(t)
}

func TestRedisWithStorageKeepsItsData(t *testing.T) {
	t.Parallel()
	d := database{namespace: newNamespace(t), name: "orders"}
	storage := &v1alpha1.StorageSpec{Size: resource.MustParse("128Mi")}
	d.create(t, storage)
	ready := d.waitReady(t)
	app := newClient(t, d.namespace, ready.Status.SecretName)
	app.mustRedis(t, "set", "key", "value")
	credentials := d.credentials(t, ready.Status.SecretName)

	d.deletePod(t)
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("after the pod was deleted: got %q, want the value", got)
	}
	d.changeMemory(t, "96Mi")
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("after the resources changed: got %q, want the value", got)
	}

	d.delete(t,
		"PersistentVolumeClaim/data-orders-db-0",
		"Secret/orders-db-admin", "Secret/orders-db-auth",
	)
	d.create(t, storage)
	ready = d.waitReady(t)
	if now := d.credentials(t, ready.Status.SecretName); !maps.Equal(now, credentials) {
		t.Error("the credentials of the database that was made again differ from the kept ones")
	}
	// This client has had its credentials since before the deletion.
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("after delete and create: got %q, want the value", got)
	}
}

func TestRedisRefusesWhoeverHasNoPassword(t *testing.T) {
	t.Parallel()
	d := database{namespace: newNamespace(t), name: "closed"}
	d.create(t, nil)
	app := newClient(t, d.namespace, d.waitReady(t).Status.SecretName)
	app.mustRedis(t, "set", "key", "value")

	const host = "closed-db"
	for what, command := range map[string][]string{
		"no password":         {"redis-cli", "-e", "-h", host, "get", "key"},
		"a wrong password":    {"redis-cli", "-e", "-h", host, "--user", "app", "--pass", "wrong", "get", "key"},
		"the server's config": {"sh", "-c", redisScript, "redis", "config", "get", "*"},
		"the accounts":        {"sh", "-c", redisScript, "redis", "acl", "list"},
		"shutdown":            {"sh", "-c", redisScript, "redis", "shutdown", "nosave"},
	} {
		answer, err := app.run(t.Context(), command...)
		if err == nil {
			t.Errorf("%s: the server answers %q", what, answer)
		}
	}
	if got := app.mustRedis(t, "get", "key"); got != "value" {
		t.Errorf("afterwards: got %q, want the value", got)
	}
}

// TestNoPasswordOutsideSecrets looks for the passwords wherever else they could be read.
func TestNoPasswordOutsideSecrets(t *testing.T) {
	t.Parallel()
	d := database{namespace: newNamespace(t), name: "canary"}
	d.create(t, &v1alpha1.StorageSpec{Size: resource.MustParse("128Mi")})
	ready := d.waitReady(t)
	var passwords []string
	for _, name := range []string{d.stem() + "-auth", d.stem() + "-admin"} {
		for key, value := range d.credentials(t, name) {
			if strings.Contains(key, "password") {
				passwords = append(passwords, value)
			}
		}
	}
	if len(passwords) < 2 {
		t.Fatalf("found %d passwords in the Secrets, want 2 at least", len(passwords))
	}

	pod, err := d.pod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	configs, err := env.kube.CoreV1().ConfigMaps(d.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := env.kube.EventsV1().Events(d.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	member := client{namespace: d.namespace, name: pod.Name}
	processes, err := member.run(t.Context(), "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/1/environ | tr '\\0' '\\n'")
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range map[string]string{
		"the pod":                 mustYAML(pod),
		"the ConfigMaps":          mustYAML(configs),
		"the events":              mustYAML(events),
		"the resource":            mustYAML(ready),
		"arguments and variables": processes,
		"the member's log":        logs(t, d.namespace, pod.Name),
		"the operator's log":      operatorLogs(t),
	} {
		for _, password := range passwords {
			if strings.Contains(text, password) {
				t.Errorf("%s hold a password", place)
			}
		}
	}
}

// credentials returns a Secret's content.
func (d database) credentials(t *testing.T, name string) map[string]string {
	t.Helper()
	secret, err := env.kube.CoreV1().Secrets(d.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read Secret %s: %v", name, err)
	}
	content := map[string]string{}
	for key, value := range secret.Data {
		content[key] = string(value)
	}
	return content
}

func operatorLogs(t *testing.T) string {
	t.Helper()
	const namespace = "database-manager-system"
	pods, err := env.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, pod := range pods.Items {
		all.WriteString(logs(t, namespace, pod.Name))
	}
	return all.String()
}

func logs(t *testing.T, namespace, pod string) string {
	t.Helper()
	content, err := env.kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("read the log of %s: %v", pod, err)
	}
	return string(content)
}
