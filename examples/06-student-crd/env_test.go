//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

const (
	// asProgram makes the test's binary behave as the program.
	asProgram = "EXAMPLES_RUN_MAIN"
	// patience bounds each wait for something that comes for sure.
	patience = 2 * time.Minute
)

// The two CustomResourceDefinitions of Student.
var (
	ourCRD      = "crd.yaml"
	articlesCRD = filepath.Join("testdata", "articles-crd.yaml")
)

// kubeconfig is that of an administrator; the clients use it.
var (
	kubeconfig string
	kube       kubernetes.Interface
	objects    dynamic.Interface
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	code, err := 1, connect()
	if err == nil {
		err = applyCRD(context.Background(), ourCRD)
	}
	if err == nil {
		code = m.Run()
		err = deleteCRD(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func connect() error {
	if kubeconfig = os.Getenv("EXAMPLES_KUBECONFIG"); kubeconfig == "" {
		return errors.New("EXAMPLES_KUBECONFIG is not set: run make examples, or set it to the kubeconfig of a cluster that may be written to")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if objects, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

func crds() dynamic.ResourceInterface {
	return objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func studentsIn(namespace string) dynamic.ResourceInterface {
	return objects.Resource(schema.GroupVersionResource{Group: "coolops.io", Version: "v1", Resource: "students"}).Namespace(namespace)
}

func readCRD(path string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &crd.Object); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return crd, nil
}

// applyCRD applies a CustomResourceDefinition, and waits until its schema is in
// force: the articles' lets a Student without a name in, and ours doesn't.
func applyCRD(ctx context.Context, path string) error {
	crd, err := readCRD(path)
	if err != nil {
		return err
	}
	if _, err := crds().Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	nobody := student("nobody", map[string]any{"name": ""})
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := studentsIn("default").Create(ctx, nobody, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return path == ourCRD && apierrors.IsInvalid(err) || path == articlesCRD && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is in force: %w", path, err)
	}
	return nil
}

// deleteCRD deletes the CustomResourceDefinition, and waits until it is gone.
func deleteCRD(ctx context.Context) error {
	const name = "students.coolops.io"
	if err := crds().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the CustomResourceDefinition: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := crds().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// The path is served a little longer.
			_, err = studentsIn("default").List(ctx, metav1.ListOptions{})
		}
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the CustomResourceDefinition is gone: %w", err)
	}
	return nil
}

// student returns a Student; a nil spec means none.
func student(name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coolops.io/v1", "kind": "Student"}}
	object.SetName(name)
	if spec != nil {
		object.Object["spec"] = spec
	}
	return object
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespaces := kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "student-crd-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// await waits until something is so.
func await(t *testing.T, what string, isSo func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) { return isSo(ctx), nil })
	if err != nil {
		t.Fatalf("it isn't so, for %s, that %s", patience, what)
	}
}

// program is the example, running.
type program struct {
	command *exec.Cmd
	exited  chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// Write takes what the program prints.
func (p *program) Write(printed []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(printed)
}

func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

func start(t *testing.T, kubeconfig, namespace string, arguments ...string) *program {
	t.Helper()
	arguments = append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + namespace}, arguments...)
	p := &program{command: exec.Command(os.Args[0], arguments...), exited: make(chan struct{})}
	p.command.Env = append(os.Environ(), asProgram+"=1")
	p.command.Stdout, p.command.Stderr = p, p
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // the test reads the code
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // it may have ended
		<-p.exited
		if t.Failed() {
			t.Logf("it printed:\n%s", p.printed())
		}
	})
	return p
}

func (p *program) awaitText(t *testing.T, text string) {
	t.Helper()
	await(t, fmt.Sprintf("%q is printed", text), func(context.Context) bool { return strings.Contains(p.printed(), text) })
}

// awaitExit waits for the end, and checks the exit code.
func (p *program) awaitExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("it doesn't end")
	}
	if got := p.command.ProcessState.ExitCode(); got != code {
		t.Errorf("it ended with code %d, want %d", got, code)
	}
}

// mustPrint holds the output to lines, each of which is part of one printed, in
// the same order; others may stand between.
func (p *program) mustPrint(t *testing.T, lines ...string) {
	t.Helper()
	rest := strings.Split(p.printed(), "\n")
	for _, line := range lines {
		index := slices.IndexFunc(rest, func(printed string) bool { return strings.Contains(printed, line) })
		if index < 0 {
			t.Fatalf("%q isn't printed in its place", line)
		}
		rest = rest[index+1:]
	}
}

// writeKubeconfig writes a kubeconfig for the test, changed from the administrator's.
func writeKubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// line is a TCP connection to the API server that can be cut, and mended.
type line struct {
	kubeconfig, address, target string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{address: "127.0.0.1:0"}
	t.Cleanup(l.cut)
	l.kubeconfig = writeKubeconfig(t, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		l.target = server.Host
		l.mend(t)
		server.Host, cluster.TLSServerName = l.address, server.Hostname()
		cluster.Server = server.String()
	})
	return l
}

// mend listens, at the same address as before.
func (l *line) mend(t *testing.T) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.address = listener, listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was cut
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.target)
			if err != nil {
				_ = client.Close() // the client will see
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, client, server)
			l.mu.Unlock()
			go func() { _, _ = io.Copy(client, server) }() // until it is cut
			go func() { _, _ = io.Copy(server, client) }()
		}
	}()
}

// cut ends all connections, and lets none in.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.open {
		_ = end.Close() // it may be closed
	}
	_ = l.listener.Close()
	l.open = nil
}
