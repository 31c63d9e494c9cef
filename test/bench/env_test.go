//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
	"coolops.cn/database-manager/test/e2e/audit"
	"coolops.cn/database-manager/test/kube"
	"coolops.cn/database-manager/test/player"
)

// env is what is measured, and with what; TestMain fills it before any test runs.
var env environment

type environment struct {
	config *rest.Config
	// operator and twin are paths of binaries, out is a folder, etcd a command.
	operator, twin, out, etcd string
	kube                      kubernetes.Interface
	resources                 versioned.Interface
	// player plays the servers, and the nodes where there are none.
	player *player.Player
	audit  *audit.Log
	sizes  sizes
}

// sizes is how much is measured.
type sizes struct {
	rounds, lives, foos, foreign, changes, broken int
	rest                                          time.Duration
	databases, restarts                           []int
}

func (s sizes) String() string {
	return fmt.Sprintf("%d rounds, %s of rest, %d of each kind led through a life, %d Foos, %v databases, restarts with %v, %d foreign objects of each kind, %d changes at once, %d broken resources",
		s.rounds, s.rest, s.lives, s.foos, s.databases, s.restarts, s.foreign, s.changes, s.broken)
}

func TestMain(m *testing.M) {
	// What informers say when they are stopped is no result.
	klog.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if env, err = connect(ctx); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	options := player.Options{Folder: folder, RunsAll: true}
	if os.Getenv("BENCH_NODES") == "kwok" {
		options.ServesOthers = true
	} else {
		options.Nodes = 3
	}
	if env.player, err = player.Start(ctx, protobuf(env.config), options); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, env.player.Stop()) }()
	if env.audit, err = audit.Follow(os.Getenv("BENCH_AUDIT_LOG"), identity); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, env.audit.Stop()) }()
	return m.Run(), nil
}

func connect(ctx context.Context) (environment, error) {
	e := environment{operator: os.Getenv("BENCH_OPERATOR"), twin: os.Getenv("BENCH_TWIN"), out: os.Getenv("BENCH_OUT"), etcd: os.Getenv("BENCH_ETCD_METRICS")}
	kubeconfig := os.Getenv("BENCH_KUBECONFIG")
	if kubeconfig == "" || e.operator == "" || os.Getenv("BENCH_AUDIT_LOG") == "" {
		return environment{}, errors.New("BENCH_KUBECONFIG, BENCH_OPERATOR and BENCH_AUDIT_LOG are not all set: run make bench-quick")
	}
	var err error
	if e.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return environment{}, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	e.config.QPS = -1 // the API server has fairness of its own
	if err := rest.LoadTLSFiles(e.config); err != nil {
		return environment{}, err
	}
	if e.sizes, err = readSizes(); err != nil {
		return environment{}, err
	}
	if e.kube, err = kubernetes.NewForConfig(protobuf(e.config)); err != nil {
		return environment{}, err
	}
	if e.resources, err = versioned.NewForConfig(e.config); err != nil {
		return environment{}, err
	}
	if _, err := e.resources.CoolopsV1alpha1().DatabaseManagers("default").List(ctx, metav1.ListOptions{}); err != nil {
		return environment{}, fmt.Errorf("list databases (is config/crds.yaml applied?): %w", err)
	}
	return e, nil
}

// protobuf has Kubernetes' own types sent in less.
func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func readSizes() (sizes, error) {
	var s sizes
	var failures []error
	for _, number := range []struct {
		variable  string
		into      *int
		otherwise int
	}{
		{"BENCH_ROUNDS", &s.rounds, 6},
		{"BENCH_LIVES", &s.lives, 20},
		{"BENCH_FOOS", &s.foos, 200},
		{"BENCH_FOREIGN", &s.foreign, 50000},
		{"BENCH_CHANGES", &s.changes, 1000},
		{"BENCH_BROKEN", &s.broken, 1000},
	} {
		read, err := numbers(number.variable, strconv.Itoa(number.otherwise))
		if err != nil || len(read) != 1 {
			failures = append(failures, fmt.Errorf("%s has to be one number: %w", number.variable, err))
			continue
		}
		*number.into = read[0]
	}
	var err error
	if s.databases, err = numbers("BENCH_SIZES", "100,1000,5000,10000"); err != nil || !slices.IsSorted(s.databases) {
		failures = append(failures, errors.Join(errors.New("BENCH_SIZES has to be rising numbers"), err))
	}
	if s.restarts, err = numbers("BENCH_RESTARTS", "1000,5000"); err != nil {
		failures = append(failures, err)
	}
	if s.rest, err = time.ParseDuration(valueOf("BENCH_REST", "2m")); err != nil {
		failures = append(failures, err)
	}
	return s, errors.Join(failures...)
}

func valueOf(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

// numbers reads numbers, none of them negative, that commas separate.
func numbers(variable, otherwise string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(valueOf(variable, otherwise), ",") {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return nil, fmt.Errorf("%s has %q, which isn't a number of things", variable, part)
		}
		all = append(all, number)
	}
	return all, nil
}

// newNamespace makes a namespace, which goes with the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	return kube.NewNamespace(t, env.kube, "bench-", nil)
}

// eventually waits until check returns no error.
func eventually(t *testing.T, bound time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	kube.Eventually(t, 20*time.Millisecond, bound, what, check)
}
