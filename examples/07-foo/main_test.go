//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"coolops.cn/database-manager/pkg/generated/clientset/versioned"
)

// bound is how long anything may take; the operator itself pauses for up to a
// few seconds before it tries again.
const bound = 90 * time.Second

// env is what the tests run, and against what; TestMain fills it.
var env environment

type environment struct {
	// example and operator are the paths of the programs.
	example, operator string
	config            *rest.Config
	kube              kubernetes.Interface
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "07-foo-")
	if err == nil {
		env, err = prepare(context.Background(), folder)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, "07-foo tests:", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, "07-foo tests:", err)
	}
	os.Exit(code)
}

// prepare builds both programs into a folder, and installs Foo's
// CustomResourceDefinition.
func prepare(ctx context.Context, folder string) (environment, error) {
	kubeconfig := os.Getenv("EXAMPLES_KUBECONFIG")
	if kubeconfig == "" {
		return environment{}, errors.New("EXAMPLES_KUBECONFIG is not set: run make examples")
	}
	e := environment{example: filepath.Join(folder, "07-foo"), operator: filepath.Join(folder, "database-manager")}
	for _, build := range [][]string{{e.example, "."}, {e.operator, "../../cmd/database-manager"}} {
		if output, err := exec.CommandContext(ctx, "go", "build", "-o", build[0], build[1]).CombinedOutput(); err != nil {
			return environment{}, fmt.Errorf("build %s: %w\n%s", build[1], err, output)
		}
	}
	var err error
	if e.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return environment{}, err
	}
	if e.kube, err = kubernetes.NewForConfig(e.config); err != nil {
		return environment{}, err
	}
	return e, e.installCRD(ctx)
}

func (e environment) installCRD(ctx context.Context) error {
	content, err := os.ReadFile("../../config/crd/samplecontroller.k8s.io_foos.yaml")
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, crd); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(e.config)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := client.Resource(resource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "07-foo-test", Force: true}); err != nil {
		return err
	}
	foos, err := versioned.NewForConfig(e.config)
	if err != nil {
		return err
	}
	return eventually(ctx, func() bool {
		_, err := foos.SamplecontrollerV1alpha1().Foos("default").List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil
	})
}

// eventually waits until check is true.
func eventually(ctx context.Context, check func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for ticker := time.NewTicker(20 * time.Millisecond); ; {
		if check() {
			ticker.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s", bound)
		case <-ticker.C:
		}
	}
}

// newNamespace makes a namespace that goes with the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespaces := env.kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foo-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}

// writeKubeconfig writes a kubeconfig, and returns its path.
func writeKubeconfig(t *testing.T, server string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	cluster, user := &clientcmdapi.Cluster{Server: server}, &clientcmdapi.AuthInfo{}
	if change != nil {
		change(cluster, user)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = cluster, user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// apiServer stands before the real API server, and can do without Foo.
type apiServer struct {
	server  *httptest.Server
	hasFoos atomic.Bool
}

// newAPIServer starts one; without a listener on a port of its own.
func newAPIServer(t *testing.T, listener net.Listener) *apiServer {
	t.Helper()
	target, err := url.Parse(env.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // each event of a watch goes on at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	if forward.Transport, err = rest.TransportFor(env.config); err != nil {
		t.Fatal(err)
	}
	a := &apiServer{}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/samplecontroller.k8s.io/") && !a.hasFoos.Load() {
			http.NotFound(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	if listener != nil {
		a.server.Listener = listener
	}
	a.server.Start()
	t.Cleanup(func() {
		a.server.CloseClientConnections() // watches would never end
		a.server.Close()
	})
	return a
}

// output is what a program has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// example is a running example.
type example struct {
	*exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// startExample runs the example, in a process group of its own.
func startExample(t *testing.T, arguments ...string) *example {
	t.Helper()
	e := &example{Cmd: exec.Command(env.example, arguments...), ended: make(chan struct{})}
	e.Stdout, e.Stderr = &e.stdout, &e.stderr
	e.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = e.Wait() // the exit code says more
		close(e.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-e.Process.Pid, syscall.SIGKILL) // if anything is left
		<-e.ended
	})
	return e
}

// says waits until the example has printed a text on standard error.
func (e *example) says(t *testing.T, text string) {
	t.Helper()
	if err := eventually(t.Context(), func() bool { return strings.Contains(e.stderr.String(), text) }); err != nil {
		t.Fatalf("%q isn't said: %v\nstandard error:\n%s", text, err, e.stderr.String())
	}
}

// ends waits for the end, and wants an exit code.
func (e *example) ends(t *testing.T, code int) {
	t.Helper()
	select {
	case <-e.ended:
	case <-time.After(bound):
		t.Fatalf("it doesn't end; standard error:\n%s", e.stderr.String())
	}
	if got := e.ProcessState.ExitCode(); got != code {
		t.Errorf("it ends with %d, want %d; standard error:\n%s", got, code, e.stderr.String())
	}
	if err := syscall.Kill(-e.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the operator is still there: %v", err)
	}
}

// prints wants lines on standard output that contain the parts, in this order.
func (e *example) prints(t *testing.T, parts ...string) {
	t.Helper()
	lines := strings.Split(e.stdout.String(), "\n")
	for _, part := range parts {
		for len(lines) > 0 && !strings.Contains(strings.Join(strings.Fields(lines[0]), " "), part) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			t.Fatalf("no line with %q, in this order, in\n%s", part, e.stdout.String())
		}
		lines = lines[1:]
	}
}

// theWalk is what happens in this order, whatever else happens between.
func theWalk() []string {
	return []string{
		"spec.replicas becomes 3",
		"watch Received *v1alpha1.Foo",
		"handler Handling *v1alpha1.Foo",
		"queue Queueing",
		"worker Syncing",
		"sync Decided apply the intent changed",
		"fieldManager=database-manager&force=true 200 OK",
		"sync Wrote the Deployment apply",
		"fieldManager=database-manager-status&force=true 200 OK",
		"sync Wrote the status Synced",
		"worker Syncing",
		"sync Decided nothing",
	}
}

func TestAChangeIsFollowedThroughTheOperator(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	e := startExample(t, "--namespace="+namespace, "--manager="+env.operator, "--kubeconfig="+os.Getenv("EXAMPLES_KUBECONFIG"))
	e.ends(t, 0)
	e.prints(t, "foo "+namespace+"/walk-", "API server Response POST namespaces/"+namespace+"/deployments?fieldManager=database-manager 201 Created", "sync Decided nothing")
	e.prints(t, theWalk()...)
	e.prints(t, "spec.replicas becomes 3", "watch Received *v1.Deployment", "handler Handling *v1.Deployment", "queue Queueing", "sync Decided nothing")
	if said := e.stderr.String(); said != "" {
		t.Errorf("it complains: %s", said)
	}
	deployments, err := env.kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(deployments.Items) != 1 || *deployments.Items[0].Spec.Replicas != 3 {
		t.Errorf("the Deployment isn't there with 3 replicas: %v, %v", deployments.Items, err)
	}
}

func TestAMissingResourceIsWaitedFor(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t, nil)
	e := startExample(t, "--namespace="+newNamespace(t), "--manager="+env.operator, "--kubeconfig="+writeKubeconfig(t, api.server.URL, nil))
	e.says(t, "kubectl apply --server-side -f config/crd/samplecontroller.k8s.io_foos.yaml")
	e.says(t, "operator: The API server has no such resource; install its CustomResourceDefinition")
	api.hasFoos.Store(true)
	e.ends(t, 0)
	e.prints(t, theWalk()...)
}

func TestAnAPIServerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	e := startExample(t, "--namespace="+newNamespace(t), "--manager="+env.operator, "--kubeconfig="+writeKubeconfig(t, "http://"+address, nil))
	e.says(t, "07-foo: waiting until the API server answers")
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	newAPIServer(t, listener).hasFoos.Store(true)
	e.ends(t, 0)
	e.prints(t, theWalk()...)
}

func TestWhatDoesntHealEndsIt(t *testing.T) {
	t.Parallel()
	administrator := os.Getenv("EXAMPLES_KUBECONFIG")
	wrongToken := writeKubeconfig(t, env.config.Host, func(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		cluster.CertificateAuthorityData, user.Token = env.config.CAData, "wrong"
	})
	unknownCA := writeKubeconfig(t, env.config.Host, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = "wrong" })
	for sentence, row := range map[string]struct {
		kubeconfig, manager, says string
	}{
		"a wrong token":           {wrongToken, env.operator, "take the kubeconfig of an administrator of this cluster: Unauthorized"},
		"a CA that isn't known":   {unknownCA, env.operator, "certificate signed by unknown authority"},
		"no kubeconfig":           {"missing", env.operator, "read the kubeconfig: stat missing: no such file"},
		"no operator":             {administrator, "missing", "start the operator, which make build builds"},
		"an operator that fails":  {administrator, "testdata/fails.sh", "the operator has ended"},
		"a namespace that is not": {administrator, env.operator, "write the Foo"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := startExample(t, "--kubeconfig="+row.kubeconfig, "--manager="+row.manager, "--namespace=there-is-none")
			e.ends(t, 1)
			if said := e.stderr.String(); !strings.Contains(said, row.says) || strings.Contains(said, "goroutine") {
				t.Errorf("it says %s", said)
			}
		})
	}
}

func TestASignalEndsItAndTheOperator(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t, nil)
	e := startExample(t, "--namespace="+newNamespace(t), "--manager="+env.operator, "--kubeconfig="+writeKubeconfig(t, api.server.URL, nil))
	e.says(t, "operator: The API server has no such resource")
	if err := e.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	e.ends(t, 0)
}
