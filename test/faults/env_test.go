//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/test/kube"
	"coolops.cn/database-manager/test/player"
	"coolops.cn/database-manager/test/sample"
)

// env is the API server under test; TestMain fills it before any test runs.
var env environment

type environment struct {
	config *rest.Config
	// operator is the path of the operator's binary.
	operator string
	// auditLog is the path of the API server's audit log.
	auditLog  string
	kube      kubernetes.Interface
	resources versioned.Interface
	// player plays the nodes, and the servers on them.
	player *player.Player
	// isFull is true if all scenarios are played, and not what CI has time for.
	isFull bool
	// seed chooses what is played of all that there is: of share plans one, so many
	// pairs of mutations, and each disturbance of leaders so often.
	seed, share, pairs, disturbances uint64
	// restart is a command that kills the control plane, and returns when it is back.
	restart string
	// tally is what was tried, and table the path of the file that it is written to.
	tally *tally
	table string
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault tests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if env, err = connect(context.Background()); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "faults")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if env.player, err = player.Start(context.Background(), env.config, player.Options{Nodes: 3, Folder: folder}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, env.player.Stop()) }()
	env.tally = &tally{}
	done := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- writeTable(done) }()
	code = m.Run()
	close(done)
	return code, <-ended
}

// writeTable writes what was tried so far, again and again until all of it is done.
func writeTable(done <-chan struct{}) error {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for isDone := false; !isDone; {
		select {
		case <-ticker.C:
		case <-done:
			isDone = true
		}
		if err := os.WriteFile(env.table, []byte(env.tally.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func connect(ctx context.Context) (environment, error) {
	kubeconfig, operator, auditLog, table := os.Getenv("FAULTS_KUBECONFIG"), os.Getenv("FAULTS_OPERATOR"), os.Getenv("FAULTS_AUDIT_LOG"), os.Getenv("FAULTS_TABLE")
	if kubeconfig == "" || operator == "" || auditLog == "" || table == "" {
		return environment{}, errors.New("FAULTS_KUBECONFIG, FAULTS_OPERATOR, FAULTS_AUDIT_LOG and FAULTS_TABLE are not all set: run make test-faults")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return environment{}, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server has fairness of its own
	e := environment{config: config, operator: operator, auditLog: auditLog, isFull: os.Getenv("FAULTS_FULL") != "", table: table, restart: os.Getenv("FAULTS_RESTART")}
	if e.restart == "" {
		return environment{}, errors.New("FAULTS_RESTART isn't set: run make test-faults")
	}
	if e.seed, err = sample.Number("FAULTS_SEED", 1); err != nil {
		return environment{}, err
	}
	if e.share, err = sample.Number("FAULTS_SHARE", 1); err != nil {
		return environment{}, err
	}
	if e.disturbances, err = sample.Number("FAULTS_DISTURBANCES", 1); err != nil {
		return environment{}, err
	}
	if e.pairs, err = sample.Number("FAULTS_PAIRS", 12); err != nil {
		return environment{}, err
	}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		return environment{}, err
	}
	if e.resources, err = versioned.NewForConfig(config); err != nil {
		return environment{}, err
	}
	if _, err := e.resources.CoolopsV1alpha1().DatabaseManagers("default").List(ctx, metav1.ListOptions{}); err != nil {
		return environment{}, fmt.Errorf("list databases (is config/crds.yaml applied?): %w", err)
	}
	return e, nil
}

// newNamespace makes a namespace for one plan. It stays, empty: to delete one costs the
// API server as much as a third of a plan does.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := env.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := empty(context.Background(), namespace.Name); err != nil {
			t.Errorf("empty the namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// empty deletes all that plans make in a namespace, owners first, so that nobody makes
// anything again. Services go with the databases.
func empty(ctx context.Context, namespace string) error {
	// That one would be made again.
	everything, at := metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	core, apps := env.kube.CoreV1(), env.kube.AppsV1()
	for _, deleteAll := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		env.resources.CoolopsV1alpha1().DatabaseManagers(namespace).DeleteCollection,
		env.resources.SamplecontrollerV1alpha1().Foos(namespace).DeleteCollection,
		apps.StatefulSets(namespace).DeleteCollection,
		apps.Deployments(namespace).DeleteCollection,
		apps.ReplicaSets(namespace).DeleteCollection,
		core.Pods(namespace).DeleteCollection,
		core.PersistentVolumeClaims(namespace).DeleteCollection,
		core.ConfigMaps(namespace).DeleteCollection,
		core.Secrets(namespace).DeleteCollection,
		env.kube.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection,
		env.kube.NetworkingV1().NetworkPolicies(namespace).DeleteCollection,
		env.kube.EventsV1().Events(namespace).DeleteCollection,
	} {
		if err := deleteAll(ctx, at, everything); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until check returns no error.
func eventually(t *testing.T, bound time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	kube.Eventually(t, 100*time.Millisecond, bound, what, check)
}
