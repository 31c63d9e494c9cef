//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
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

// patience is how long a client goes on asking. Machines that test are slow.
const patience = 2 * time.Minute

// client is a pod that reaches a database as an application does: through its
// Service, with the content of its Secret, which it has as files in /credentials.
type client struct {
	engine
	namespace, name string
}

// askScript asks until there is an answer, as an application's pool of
// connections would: $1 is for how many seconds, $2 what asks, and what follows
// the query. It waits where the question is asked, so that what is measured
// isn't the way there.
const askScript = `end=$(($(date +%s) + $1)) script=$2
shift 2
until answer=$(timeout 5 sh -c "$script" client "$@" 2>/tmp/failure); do
	if [ "$(date +%s)" -ge "$end" ]; then
		printf '%s\n' "$answer"
		cat /tmp/failure
		exit 1
	fi
	sleep 0.1
done
printf '%s' "$answer"`

// loginScript makes the files of what it is given, a key and a value in each line.
const loginScript = `while read -r key value; do printf '%s' "$value" | base64 -d >"/credentials/$key"; done`

// newClient starts a client of an engine. It has no credentials yet.
func newClient(t *testing.T, namespace string, e engine) client {
	t.Helper()
	pod, err := env.kube.CoreV1().Pods(namespace).Create(t.Context(), clientPod(e.image), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	c := client{engine: e, namespace: namespace, name: pod.Name}
	eventually(t, patience, "start a client", func(ctx context.Context) error {
		_, err := c.run(ctx, nil, "true")
		return err
	})
	return c
}

func clientPod(image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(dataUser)), FSGroup: new(int64(dataUser)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{{
				Name:         "credentials",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
			}},
			Containers: []corev1.Container{{
				Name: "client", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
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

// login gives the client the content of a Secret, as files. It keeps them when
// the Secret changes or goes.
func (c client) login(t *testing.T, credentials map[string]string) {
	t.Helper()
	var lines strings.Builder
	for key, value := range credentials {
		fmt.Fprintf(&lines, "%s %s\n", key, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	if _, err := c.run(t.Context(), strings.NewReader(lines.String()), "sh", "-c", loginScript); err != nil {
		t.Fatalf("give a client its credentials: %v", err)
	}
}

// key is what all values are written under.
const key = "key"

// write writes a value, once the database can.
func (c client) write(t *testing.T, value string) {
	t.Helper()
	c.ask(t, c.writeQuery(key, value)...)
}

// read returns the value, once the database answers; empty if there is none.
func (c client) read(t *testing.T) string {
	t.Helper()
	return c.ask(t, c.readQuery(key)...)
}

// expect fails the test, not at once, if the value isn't the one.
func (c client) expect(t *testing.T, when, value string) {
	t.Helper()
	if got := c.read(t); got != value {
		t.Errorf("%s: the value is %q, want %q", when, got, value)
	}
}

// ask sends a query until the database answers.
func (c client) ask(t *testing.T, query ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience+10*time.Second)
	defer cancel()
	answer, err := c.tryFor(ctx, patience, query...)
	if err != nil {
		t.Fatalf("%s: not answered within %s: %v", strings.Join(query, " "), patience, err)
	}
	return answer
}

// tryFor sends a query for as long as the database refuses it, up to a limit of
// whole seconds; 0 is for once.
func (c client) tryFor(ctx context.Context, limit time.Duration, query ...string) (string, error) {
	command := []string{"sh", "-c", askScript, "ask", strconv.Itoa(int(limit.Seconds())), c.script}
	return c.run(ctx, nil, append(command, query...)...)
}

// run runs a command in the client's pod and returns what it prints.
func (c client) run(ctx context.Context, input io.Reader, command ...string) (string, error) {
	return execute(ctx, c.namespace, c.name, input, command...)
}

// execute runs a command in a pod and returns what it prints.
func execute(ctx context.Context, namespace, pod string, input io.Reader, command ...string) (string, error) {
	request := env.kube.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: input != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(env.config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &stdout, Stderr: &stderr}); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
