//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/test/kube"
)

// env is the cluster under test; TestMain fills it before any test runs.
var env environment

type environment struct {
	config    *rest.Config
	kube      kubernetes.Interface
	databases versioned.Interface
	dynamic   dynamic.Interface
	// isFull is true if all is to be tested, and not what CI has time for.
	isFull bool
	// engines are the names of those that are tested fully; none stands for all.
	engines []string
	// auditLog is the path of the API server's audit log.
	auditLog string
	// figures is the path of the file that measurements are added to.
	figures string
	// nextImage is the image of the operator's next build.
	nextImage string
	// localcluster is the command that cuts the cluster's pods off, with the words
	// that say which cluster it is.
	localcluster string
}

// operatorNamespace is where the operator runs.
const operatorNamespace = "database-manager-system"

func TestMain(m *testing.M) {
	var err error
	if env, err = connect(context.Background(), os.Getenv("E2E_KUBECONFIG")); err != nil {
		fmt.Fprintln(os.Stderr, "e2e tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect(ctx context.Context, kubeconfig string) (environment, error) {
	if kubeconfig == "" {
		return environment{}, errors.New("E2E_KUBECONFIG is not set: run make test-e2e, or set it to the kubeconfig of a cluster with the operator in it")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return environment{}, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server has fairness of its own
	e := environment{
		config: config, isFull: os.Getenv("E2E_FULL") != "", engines: strings.Fields(os.Getenv("E2E_ENGINES")), auditLog: os.Getenv("E2E_AUDIT_LOG"), figures: os.Getenv("E2E_FIGURES"),
		nextImage: os.Getenv("E2E_NEXT_IMAGE"), localcluster: os.Getenv("E2E_LOCALCLUSTER"),
	}
	if e.auditLog == "" || e.figures == "" || e.nextImage == "" || e.localcluster == "" {
		return environment{}, errors.New("E2E_AUDIT_LOG, E2E_FIGURES, E2E_NEXT_IMAGE and E2E_LOCALCLUSTER are not all set: run make test-e2e")
	}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	if e.databases, err = versioned.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	if e.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return environment{}, fmt.Errorf("make a client: %w", err)
	}
	operator, err := e.kube.AppsV1().Deployments(operatorNamespace).Get(ctx, "database-manager", metav1.GetOptions{})
	if err != nil {
		return environment{}, fmt.Errorf("find the operator (is config/install.yaml applied?): %w", err)
	}
	if operator.Status.AvailableReplicas == 0 {
		return environment{}, errors.New("the operator isn't available: kubectl -n database-manager-system describe pods")
	}
	return e, nil
}

// newNamespace makes a namespace for one test, in which Pod Security admits only
// restricted pods. It goes with the test; what stood in it is printed if it failed.
func newNamespace(t *testing.T) string {
	t.Helper()
	return newNamespaceWith(t, "restricted")
}

// newNamespaceWith makes one with another level of Pod Security.
func newNamespaceWith(t *testing.T, level string) string {
	t.Helper()
	namespaces := env.kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": level},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own is done by now
		if t.Failed() {
			describe(ctx, t, namespace.Name)
		}
		if err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// describe logs what a person would look at first.
func describe(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	databases, err := env.databases.CoolopsV1alpha1().DatabaseManagers(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, database := range databases.Items {
			t.Logf("database %s:\n%s", database.Name, mustYAML(database.Status))
		}
	}
	pods, err := env.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, pod := range pods.Items {
			t.Logf("pod %s: %s\n%s", pod.Name, pod.Status.Phase, mustYAML(pod.Status.ContainerStatuses))
			for _, isPrevious := range []bool{true, false} {
				options := &corev1.PodLogOptions{TailLines: new(int64(30)), Previous: isPrevious}
				if tail, err := env.kube.CoreV1().Pods(namespace).GetLogs(pod.Name, options).DoRaw(ctx); err == nil {
					t.Logf("log of %s, previous container %t:\n%s", pod.Name, isPrevious, tail)
				}
			}
		}
	}
	events, err := env.kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, event := range events.Items {
			t.Logf("event %s %s: %s %s", event.Regarding.Kind, event.Regarding.Name, event.Reason, event.Note)
		}
	}
}

func mustYAML(value any) string {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// record adds a measurement to the figures.
func record(t *testing.T, what string, took time.Duration) {
	t.Helper()
	file, err := os.OpenFile(env.figures, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Errorf("record a figure: %v", err)
		return
	}
	_, err = fmt.Fprintf(file, "%6.1f s  %s: %s\n", took.Seconds(), t.Name(), what)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Errorf("record a figure: %v", err)
	}
}

// eventually waits until check returns no error, and fails the test with its last
// one if that takes longer than the bound.
func eventually(t *testing.T, bound time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	kube.Eventually(t, 200*time.Millisecond, bound, what, check)
}
