//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is the administrator's of the cluster that most tests use.
func kubeconfig(t *testing.T) string { return variable(t, "EXAMPLES_KUBECONFIG") }

// variable reads what make examples sets.
func variable(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run make examples", name)
	}
	return value
}

func configOf(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// newNamespace makes a namespace for one test, which goes with it, and returns a client of its pods.
func newNamespace(t *testing.T, kubeconfig string) (name string, pods corev1client.PodInterface) {
	t.Helper()
	client, err := kubernetes.NewForConfig(configOf(t, kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "workqueue-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name, client.CoreV1().Pods(namespace.Name)
}

// createPod makes a pod, as soon as the namespace has the account that every pod needs, and returns when the scheduler
// has said that there is no node: from then on nobody but the test changes it.
func createPod(t *testing.T, pods corev1client.PodInterface, name string, annotations map[string]string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		stored, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(stored.Status.Conditions) > 0, err
	})
	if err != nil {
		t.Fatalf("wait for the scheduler to look at pod %s: %v", name, err)
	}
}

func patchPod(t *testing.T, pods corev1client.PodInterface, name, patch string, subresources ...string) {
	t.Helper()
	if _, err := pods.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, pods corev1client.PodInterface, name string) {
	t.Helper()
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestEveryChangeIsSynced(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "before", nil)
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace)
	p.expect(`^pods in the store: 1; their keys are queued$`)
	p.expect(`worker \d: ` + namespace + `/before is Pending$`)
	createPod(t, pods, "after", nil)
	p.expect(`/after is Pending$`)
	patchPod(t, pods, "after", `{"status":{"phase":"Running"}}`, "status")
	p.expect(`/after is Running$`)
	deletePod(t, pods, "before")
	p.expect(`/before is gone$`)
	p.signal(syscall.SIGTERM)
	p.ended(0)
}

func TestAFailureIsTriedAgainAfterGrowingPauses(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "flaky", map[string]string{"example.coolops.io/fail": "3"})
	createPod(t, pods, "sound", nil)
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace, "--workers=1")
	var tries []time.Time
	for _, outcome := range []string{"failed, attempt 1: .*", "failed, attempt 2: .*", "failed, attempt 3: .*", "is Pending"} {
		match := p.expect(`^(\S+) worker 1: ` + namespace + `/flaky ` + outcome + `$`)
		at, err := time.Parse("15:04:05.0", match[1])
		if err != nil {
			t.Fatal(err)
		}
		tries = append(tries, at)
	}
	for i, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		// Times are printed in tenths of a second. More than the next pause would be is no longer a delay of this one.
		took := (tries[i+1].Sub(tries[i]) + 24*time.Hour) % (24 * time.Hour)
		if took < pause-100*time.Millisecond || took >= 2*pause {
			t.Errorf("attempt %d came %s after the one before, want %s", i+2, took, pause)
		}
	}
	// The failures are forgotten: another one is the first again.
	patchPod(t, pods, "flaky", `{"metadata":{"annotations":{"example.coolops.io/fail":"1"}}}`)
	p.expect(`/flaky failed, attempt 1: `)
	p.expect(`/flaky is Pending$`)
	p.signal(syscall.SIGTERM)
	printed := p.ended(0)
	if early, _, _ := strings.Cut(printed, "attempt 2"); !strings.Contains(early, "/sound is Pending") {
		t.Errorf("another pod had to wait for the one that fails:\n%s", printed)
	}
}

func TestChangesOfOneKeyAreSyncedOnceAndNeverAtTheSameTime(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "busy", nil)
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace, "--workers=4", "--work=5s")
	p.expect(`^pods in the store: 1`)
	for i := range 10 { // while the first sync works
		patchPod(t, pods, "busy", fmt.Sprintf(`{"metadata":{"labels":{"change":"%d"}}}`, i))
	}
	p.expect(`/busy is Pending$`)
	deletePod(t, pods, "busy")
	p.expect(`/busy is gone$`)
	p.signal(syscall.SIGTERM)
	// The second sync shows them all. Whether it had begun when the deletion came, and so a third one follows, is chance:
	// a sync prints its line before the queue is told that it is done.
	if printed := p.ended(0); strings.Count(printed, "/busy is Pending") != 1 || strings.Count(printed, "/busy is gone") > 2 {
		t.Errorf("11 changes before the first sync's end, and one about then, want two or three syncs:\n%s", printed)
	}
}

func TestAStopWaitsForASyncThatWasBegun(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "twice", map[string]string{"example.coolops.io/fail": "1"})
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace, "--work=2s")
	p.expect(`/twice failed, attempt 1`)
	createPod(t, pods, "clock", nil)
	p.expect(`/clock is Pending$`)
	// That took two seconds. The second attempt began half a second later, and so is in the midst of its work.
	p.signal(syscall.SIGTERM)
	p.expect(`^stopping`)
	p.expect(`/twice is Pending$`)
	p.ended(0)
}

func TestAStopBeginsNoOtherSync(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	for i := range 5 {
		createPod(t, pods, fmt.Sprintf("pod-%d", i), nil)
	}
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace, "--workers=1", "--work=2s")
	p.expect(`is Pending$`)
	p.signal(syscall.SIGTERM)
	if printed := p.ended(0); strings.Count(printed, "is Pending") > 2 {
		t.Errorf("want no more than the first sync, and the second, which may have begun before the signal came:\n%s", printed)
	}
}

func TestWhatAPersonMustMendEndsIt(t *testing.T) {
	t.Parallel()
	for problem, row := range map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		wants  string
	}{
		"a wrong token": {
			func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
				*user = clientcmdapi.AuthInfo{Token: "wrong"}
			},
			"Unauthorized",
		},
		"no rights": {
			func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = "nobody" },
			`User "nobody" cannot`,
		},
		"an unknown CA": {
			func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { cluster.CertificateAuthorityData = nil },
			"certificate signed by unknown authority",
		},
	} {
		t.Run(problem, func(t *testing.T) {
			t.Parallel()
			config, err := clientcmd.LoadFromFile(kubeconfig(t))
			if err != nil {
				t.Fatal(err)
			}
			current := config.Contexts[config.CurrentContext]
			row.change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
			printed := launch(t, nil, "--kubeconfig", write(t, *config)).ended(1)
			if strings.Count(printed, "\n") != 0 || !strings.Contains(printed, row.wants) || !strings.Contains(printed, "correct the CA, the credentials or the rights") {
				t.Errorf("want one sentence with %q, it prints:\n%s", row.wants, printed)
			}
		})
	}
}

// proxy stands before the API server, and can be taken away or made to lie.
type proxy struct {
	t       *testing.T
	handler http.Handler
	address string
	server  *http.Server
	// answer, if set, is what is answered to a request in place of the API server; nil passes it on.
	answer atomic.Pointer[func(*http.Request) *metav1.Status]
	// wasSent counts the answers in place of the API server's.
	wasSent atomic.Int32
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	config := configOf(t, kubeconfig(t))
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	if pass.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, address: "127.0.0.1:0"}
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := p.answer.Load(); answer != nil {
			if status := (*answer)(r); status != nil {
				p.wasSent.Add(1)
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				_ = json.NewEncoder(w).Encode(status) // who has gone needs no answer
				return
			}
		}
		pass.ServeHTTP(w, r)
	})
	p.listen()
	t.Cleanup(func() { _ = p.server.Close() }) // it may be away
	return p
}

// listen makes the server reachable, under the same address each time.
func (p *proxy) listen() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.address = listener.Addr().String()
	server := &http.Server{Handler: p.handler, ReadHeaderTimeout: patience}
	p.server = server
	go func() { _ = server.Serve(listener) }() // always an error, at the latest when it is closed
}

// cut ends all connections, and refuses new ones.
func (p *proxy) cut() {
	p.t.Helper()
	if err := p.server.Close(); err != nil {
		p.t.Fatal(err)
	}
}

func TestAServerThatGoesAwayIsFoundAgainAndNothingIsMissed(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "deleted-meanwhile", nil)
	createPod(t, pods, "unchanged", nil)
	between := newProxy(t)
	p := launch(t, nil, "--kubeconfig", kubeconfigFor(t, "http://"+between.address), "--namespace", namespace)
	p.expect(`/\S+ is Pending$`)
	p.expect(`/\S+ is Pending$`)

	between.cut()
	p.expect(`no answer, trying again with growing pauses: .*connection refused`)
	deletePod(t, pods, "deleted-meanwhile")
	createPod(t, pods, "made-meanwhile", nil)
	// The old resourceVersion is too old by now: the reflector has to list again, and the deletion is one that it missed.
	expired := func(r *http.Request) *metav1.Status {
		if query := r.URL.Query(); query.Get("watch") == "" || query.Get("resourceVersion") == "" || between.wasSent.Load() > 0 {
			return nil
		}
		status := apierrors.NewResourceExpired("too old").Status()
		return &status
	}
	between.answer.Store(&expired)
	between.listen()
	p.expect(`^the API server answers again$`)
	for range 2 { // in any order, beside the one that didn't change
		p.expect(`/(deleted-meanwhile is gone|made-meanwhile is Pending)$`)
	}
	if between.wasSent.Load() != 1 {
		t.Errorf("%d requests were told that they are too late, want 1", between.wasSent.Load())
	}
	p.signal(syscall.SIGTERM)
	p.ended(0)
}

func TestARefusalAfterItHasWorkedIsWaitedOut(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	between := newProxy(t)
	p := launch(t, nil, "--kubeconfig", kubeconfigFor(t, "http://"+between.address), "--namespace", namespace)
	p.expect(`^pods in the store: 0`)
	refusal := func(*http.Request) *metav1.Status {
		status := apierrors.NewUnauthorized("not yet ready").Status()
		return &status
	}
	between.answer.Store(&refusal)
	between.cut()
	between.listen()
	p.expect(`no answer, trying again with growing pauses: not yet ready`)
	between.answer.Store(nil)
	p.expect(`^the API server answers again$`)
	createPod(t, pods, "later", nil)
	p.expect(`/later is Pending$`)
	p.signal(syscall.SIGINT)
	p.ended(0)
}

func TestAnAPIServerThatIsKilledAndStartedAgainIsFollowedOn(t *testing.T) {
	t.Parallel()
	other := variable(t, "EXAMPLES_RESTART_KUBECONFIG")
	namespace, pods := newNamespace(t, other)
	createPod(t, pods, "before", nil)
	p := launch(t, nil, "--kubeconfig", other, "--namespace", namespace)
	p.expect(`/before is Pending$`)
	restart(t)
	p.expect(`^no answer, trying again with growing pauses: .*connection refused`)
	p.expect(`^the API server answers again$`)
	deletePod(t, pods, "before")
	p.expect(`/before is gone$`)
	createPod(t, pods, "after", nil)
	p.expect(`/after is Pending$`)
	p.signal(syscall.SIGTERM)
	p.ended(0)
}

// restart kills the API server, and returns when it is back, three seconds later.
func restart(t *testing.T) {
	t.Helper()
	command := variable(t, "EXAMPLES_RESTART")
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}
