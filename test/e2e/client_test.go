//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// dataUser is the user that the images run as.
const dataUser = 999

// client is a pod that reaches a database as an application does: through its
// Service, with the credentials of its Secret, which it has as files.
type client struct {
	namespace, name string
}

// redisScript queries the database that the files in /credentials describe.
const redisScript = `export REDISCLI_AUTH="$(cat /credentials/password)"
exec redis-cli -e -h "$(cat /credentials/host)" -p "$(cat /credentials/port)" --user "$(cat /credentials/username)" "$@"`

// newClient starts a client that has the content that the Secret has now: it is
// copied, so that the client keeps it when the Secret changes or goes.
func newClient(t *testing.T, namespace, secretName string) client {
	t.Helper()
	secrets := env.kube.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), secretName, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read the credentials: %v", err)
	}
	own, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-"}, Data: secret.Data,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("copy the credentials: %v", err)
	}
	pod, err := env.kube.CoreV1().Pods(namespace).Create(t.Context(), clientPod(own.Name), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	c := client{namespace: namespace, name: pod.Name}
	eventually(t, time.Minute, "start a client", func(ctx context.Context) error {
		_, err := c.run(ctx, "true")
		return err
	})
	return c
}

func clientPod(secretName string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: secretName},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(dataUser)), FSGroup: new(int64(dataUser)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{{
				Name:         "credentials",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secretName}},
			}},
			Containers: []corev1.Container{{
				Name: "client", Image: "redis:8.0", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sleep", "infinity"},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "credentials", MountPath: "/credentials"}},
			}},
		},
	}
}

// redis sends a command to the database and returns the answer.
func (c client) redis(ctx context.Context, command ...string) (string, error) {
	return c.run(ctx, append([]string{"sh", "-c", redisScript, "redis"}, command...)...)
}

// mustRedis sends a command until the database answers, as an application's
// connection pool would.
func (c client) mustRedis(t *testing.T, command ...string) string {
	t.Helper()
	var answer string
	eventually(t, 30*time.Second, strings.Join(command, " "), func(ctx context.Context) (err error) {
		answer, err = c.redis(ctx, command...)
		return err
	})
	return answer
}

// run runs a command in the client's pod and returns what it prints.
func (c client) run(ctx context.Context, command ...string) (string, error) {
	request := env.kube.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(c.namespace).Name(c.name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(env.config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
