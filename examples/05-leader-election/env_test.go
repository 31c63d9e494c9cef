//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// asProgram makes the test's binary behave as the program.
	asProgram = "EXAMPLES_RUN_MAIN"
	// lease is how long a lease holds in these tests, long enough for a busy machine.
	lease = 10 * time.Second
	// patience bounds each wait for something that comes for sure.
	patience = 2 * time.Minute
)

// kubeconfig is that of an administrator, and kube a client with it.
var (
	kubeconfig string
	admin      *rest.Config
	kube       kubernetes.Interface
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() (err error) {
	if kubeconfig = os.Getenv("EXAMPLES_KUBECONFIG"); kubeconfig == "" {
		return errors.New("EXAMPLES_KUBECONFIG is not set: run make examples, or set it to the kubeconfig of a cluster that may be written to")
	}
	if admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	admin.QPS = -1
	if kube, err = kubernetes.NewForConfig(admin); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// ledger is a namespace with the ConfigMap, and what was written to it.
type ledger struct {
	namespace string

	mu      sync.Mutex
	history []entry
}

// entry is one version of the ConfigMap.
type entry struct{ by, count string }

func newLedger(t *testing.T) *ledger {
	t.Helper()
	namespace, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "leader-election-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := kube.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the namespace %s: %v", namespace.Name, err)
		}
	})
	configMaps := kube.CoreV1().ConfigMaps(namespace.Name)
	created, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the ConfigMap: %v", err)
	}
	watcher, err := configMaps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=counter", ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatalf("watch the ConfigMap: %v", err)
	}
	t.Cleanup(watcher.Stop)
	l := &ledger{namespace: namespace.Name}
	go func() {
		for event := range watcher.ResultChan() {
			if version, ok := event.Object.(*corev1.ConfigMap); ok {
				l.mu.Lock()
				l.history = append(l.history, entry{by: version.Data["by"], count: version.Data["count"]})
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// entries returns the history up to now.
func (l *ledger) entries() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.history)
}

// check holds the whole history against what must be: the leaders came one after
// the other, each began with a write that counts nothing, and each number was
// given once.
func (l *ledger) check(t *testing.T, leaders ...string) {
	t.Helper()
	configMap, err := kube.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "counter", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := entry{by: configMap.Data["by"], count: configMap.Data["count"]}
	await(t, "the watch has seen the last version", func() bool {
		entries := l.entries()
		return len(entries) > 0 && entries[len(entries)-1] == last
	})
	var order []string
	count := 0
	for _, e := range l.entries() {
		if len(order) == 0 || order[len(order)-1] != e.by {
			order = append(order, e.by)
		} else {
			count++
		}
		if want := strconv.Itoa(count); e.count != want {
			t.Fatalf("%s wrote %s, want %s, in %v", e.by, e.count, want, l.entries())
		}
	}
	if !slices.Equal(order, leaders) {
		t.Errorf("%v worked, one after the other, want %v: %v", order, leaders, l.entries())
	}
}

// await waits until something is so.
func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) { return isSo(), nil })
	if err != nil {
		t.Fatalf("it isn't so, for %s, that %s", patience, what)
	}
}

// process is a candidate that runs.
type process struct {
	id      string
	command *exec.Cmd
	exited  chan struct{}
	ended   time.Time // once exited is closed

	mu    sync.Mutex
	lines []string
}

// start starts a candidate.
func (l *ledger) start(t *testing.T, id, kubeconfig string, arguments ...string) *process {
	t.Helper()
	arguments = append([]string{"--id=" + id, "--kubeconfig=" + kubeconfig, "--namespace=" + l.namespace, "--lease-duration=" + lease.String()}, arguments...)
	p := &process{id: id, command: exec.Command(os.Args[0], arguments...), exited: make(chan struct{})}
	p.command.Env = append(os.Environ(), asProgram+"=1")
	p.command.Stdout, p.command.Stderr = &lineWriter{process: p}, &lineWriter{process: p}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // the test reads the code
		p.ended = time.Now()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // it may have ended
		<-p.exited
		if t.Failed() {
			t.Logf("%s printed:\n%s", id, strings.Join(p.printed(), "\n"))
		}
	})
	return p
}

// lineWriter takes what a process prints on one of its streams.
type lineWriter struct {
	process *process
	rest    []byte
}

// Write keeps each line that is whole.
func (w *lineWriter) Write(printed []byte) (int, error) {
	w.rest = append(w.rest, printed...)
	for {
		advance, line, err := bufio.ScanLines(w.rest, false)
		if advance == 0 || err != nil {
			return len(printed), err
		}
		w.process.mu.Lock()
		w.process.lines = append(w.process.lines, string(bytes.Clone(line)))
		w.process.mu.Unlock()
		w.rest = w.rest[advance:]
	}
}

func (p *process) printed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// has tells whether a line that contains the text was printed.
func (p *process) has(text string) bool {
	return slices.ContainsFunc(p.printed(), func(line string) bool { return strings.Contains(line, text) })
}

func (p *process) awaitLine(t *testing.T, text string) {
	t.Helper()
	await(t, fmt.Sprintf("%s prints %q", p.id, text), func() bool { return p.has(text) })
}

// counted returns how many pieces this candidate has counted.
func (p *process) counted() int {
	writes := 0
	for _, line := range p.printed() {
		if strings.Contains(line, "the count is") {
			writes++
		}
	}
	return max(0, writes-1) // the first counts none
}

// awaitWork waits until the candidate has counted some pieces.
func (p *process) awaitWork(t *testing.T, pieces int) {
	t.Helper()
	await(t, fmt.Sprintf("%s counts %d pieces", p.id, pieces), func() bool { return p.counted() >= pieces })
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatalf("send %s to %s: %v", signal, p.id, err)
	}
}

// awaitExit waits for the end, and checks the exit code.
func (p *process) awaitExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("%s doesn't end", p.id)
	}
	if got := p.command.ProcessState.ExitCode(); got != code {
		t.Errorf("%s ended with code %d, want %d", p.id, got, code)
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
