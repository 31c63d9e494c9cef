//go:build bench

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/test/kube"
)

// env is the cluster; TestMain fills it before any test runs.
var env environment

type environment struct {
	config    *rest.Config
	kube      kubernetes.Interface
	resources versioned.Interface
	out       string
	// image is the archive of the operator's image, install the folder of its manifests.
	image, install string
	rounds         int
}

func TestMain(m *testing.M) {
	var err error
	if env, err = connect(); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks on a node:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() (environment, error) {
	e := environment{out: os.Getenv("BENCH_OUT"), image: os.Getenv("BENCH_IMAGE"), install: os.Getenv("BENCH_INSTALL"), rounds: 6}
	kubeconfig := os.Getenv("BENCH_NODE_KUBECONFIG")
	if kubeconfig == "" || e.out == "" || e.image == "" || e.install == "" {
		return environment{}, errors.New("BENCH_NODE_KUBECONFIG, BENCH_OUT, BENCH_IMAGE and BENCH_INSTALL are not all set: run make bench")
	}
	if rounds := os.Getenv("BENCH_ROUNDS"); rounds != "" {
		var err error
		if e.rounds, err = strconv.Atoi(rounds); err != nil || e.rounds < 1 {
			return environment{}, fmt.Errorf("BENCH_ROUNDS is %q, and no number greater than 0", rounds)
		}
	}
	var err error
	if e.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return environment{}, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	e.config.QPS = -1 // the API server has fairness of its own
	if e.kube, err = kubernetes.NewForConfig(e.config); err != nil {
		return environment{}, err
	}
	e.resources, err = versioned.NewForConfig(e.config)
	return e, err
}

// record adds figures to the raw results, as package bench does.
func record(t *testing.T, benchmark, what string, round int, values map[string]float64) {
	t.Helper()
	t.Logf("%s %s, round %d: %v", benchmark, what, round, values)
	line, err := json.Marshal(map[string]any{
		"time": time.Now().UTC(), "benchmark": benchmark, "subject": "operator", "case": what, "size": 1, "round": round, "values": values,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(env.out, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(env.out, benchmark+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(append(line, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// newNamespace makes a namespace, in which pods may do what a level of Pod Security
// permits, and which goes with the test.
func newNamespace(t *testing.T, level string) string {
	t.Helper()
	return kube.NewNamespace(t, env.kube, "bench-", map[string]string{"pod-security.kubernetes.io/enforce": level})
}

// eventually waits until check returns no error.
func eventually(t *testing.T, bound time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	kube.Eventually(t, 20*time.Millisecond, bound, what, check)
}

// pod is one that commands are run in.
type pod struct{ namespace, name string }

// startPod makes a pod that does nothing, and waits until commands run in it.
func startPod(t *testing.T, namespace, image string, change func(*corev1.PodSpec)) pod {
	t.Helper()
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "infinity"}}},
	}
	if change != nil {
		change(&spec)
	}
	created, err := env.kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a pod: %v", err)
	}
	p := pod{namespace, created.Name}
	eventually(t, 5*time.Minute, "start a pod of "+image, func(ctx context.Context) error {
		_, err := p.run(ctx, "true")
		return err
	})
	return p
}

// run runs a command in the pod, and returns what it prints.
func (p pod) run(ctx context.Context, command ...string) (string, error) {
	request := env.kube.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(p.namespace).Name(p.name).SubResource("exec").
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

// nanoseconds reads a moment that date +%s%N has printed, last of all.
func nanoseconds(text string) (time.Time, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return time.Time{}, errors.New("nothing was printed")
	}
	number, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, number), nil
}
