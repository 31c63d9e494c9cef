//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
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
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shared-informers-"}}, metav1.CreateOptions{})
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

// createPod makes a pod, as soon as the namespace has the account that every pod needs. It goes without a kubelet's help.
func createPod(t *testing.T, pods corev1client.PodInterface, name, node, app string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{{Name: "main", Image: "pause"}},
		},
	}
	if app != "" {
		pod.Labels = map[string]string{"app": app}
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
}

func patchPod(t *testing.T, pods corev1client.PodInterface, name, patch string) {
	t.Helper()
	if _, err := pods.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, pods corev1client.PodInterface, name string) {
	t.Helper()
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestBothConsumersHearOfEveryChangeThatIsTheirs(t *testing.T) {
	t.Parallel()
	namespace, pods := newNamespace(t, kubeconfig(t))
	createPod(t, pods, "one", "node-a", "shop")
	createPod(t, pods, "two", "node-a", "blog")
	createPod(t, pods, "three", "", "")
	p := launch(t, nil, "--kubeconfig", kubeconfig(t), "--namespace", namespace)
	p.expect(`^same factory: true`)
	printed := strings.Join(p.seen, "\n") + "\n"
	for _, line := range []string{"pods by node: (none)=1 node-a=2\n", "pods by app: (none)=1 blog=1 shop=1\n"} {
		if strings.Count(printed, line) != 2 {
			t.Errorf("want one %q of the consumer that is apart, and one of the one that shares:\n%s", line, printed)
		}
	}
	begun := len(p.seen)
	createPod(t, pods, "four", "node-b", "blog")
	for range 2 {
		p.expect(`^pods by (node: \(none\)=1 node-a=2 node-b=1|app: \(none\)=1 blog=2 shop=1)$`)
	}
	patchPod(t, pods, "three", `{"metadata":{"annotations":{"of":"no interest"}}}`)
	patchPod(t, pods, "three", `{"metadata":{"labels":{"app":"shop"}}}`)
	p.expect(`^pods by app: blog=2 shop=2$`)
	deletePod(t, pods, "one")
	for range 2 {
		p.expect(`^pods by (node: \(none\)=1 node-a=1 node-b=1|app: blog=2 shop=1)$`)
	}
	p.signal(syscall.SIGTERM)
	p.ended(0)
	if further := p.seen[begun:]; len(further) != 5 {
		t.Errorf("three changes are of interest, two of them to both, want 5 lines:\n%s", strings.Join(further, "\n"))
	}
}

// TestSharingHalvesTheRequests counts in the audit log, which can't confuse this program with others.
func TestSharingHalvesTheRequests(t *testing.T) {
	t.Parallel()
	const list, watch, stream = "list", "watch", "watch that begins with a list"
	for mode, row := range map[string]struct {
		environment   []string
		apart, shared map[string]int
	}{
		"with streamed lists": {nil, map[string]int{stream: 2}, map[string]int{stream: 1}},
		"with a list and a watch": {
			[]string{"KUBE_FEATURE_WatchListClient=false"}, map[string]int{list: 2, watch: 2}, map[string]int{list: 1, watch: 1},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			namespace, _ := newNamespace(t, kubeconfig(t))
			p := launch(t, row.environment, "--kubeconfig", kubeconfig(t), "--namespace", namespace)
			// The metrics are also of the other tests, which come and go.
			p.expect(`^same factory: false, same informer: false, caches: 2, list requests: -?\d+, watch requests: -?\d+, of these begun with a list: -?\d+$`)
			p.expect(`^same factory: true, same informer: true, caches: 1, list requests: -?\d+, watch requests: -?\d+, of these begun with a list: -?\d+$`)
			wanted := map[string]map[string]int{"apart": row.apart, "shared": row.shared}
			areAllThere := func(context.Context) (bool, error) {
				return maps.Equal(audited(t, namespace, "apart"), row.apart) && maps.Equal(audited(t, namespace, "shared"), row.shared), nil
			}
			if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, areAllThere); err != nil {
				t.Errorf("it wasn't until the end that the audit log had what is wanted: %v", err)
			}
			p.signal(syscall.SIGTERM)
			p.ended(0)
			for consumers, want := range wanted {
				if got := audited(t, namespace, consumers); !maps.Equal(got, want) {
					t.Errorf("%s: the audit log has %v, want %v", consumers, got, want)
				}
			}
		})
	}
}

// audited counts the requests for the pods of a namespace that an agent sent, by what they are.
func audited(t *testing.T, namespace, agent string) map[string]int {
	t.Helper()
	file, err := os.Open(variable(t, "EXAMPLES_AUDIT_LOG"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	seen, counts := map[string]bool{}, map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			AuditID, Verb, RequestURI, UserAgent string
			ObjectRef                            struct{ Resource, Namespace string }
		}
		if !strings.Contains(lines.Text(), namespace) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			continue // the last line may be half written
		}
		// A watch has an entry for its beginning and one for its end.
		if entry.ObjectRef.Resource != "pods" || entry.ObjectRef.Namespace != namespace || !strings.HasSuffix(entry.UserAgent, "/"+agent) || seen[entry.AuditID] {
			continue
		}
		seen[entry.AuditID] = true
		if strings.Contains(entry.RequestURI, "sendInitialEvents=true") {
			entry.Verb += " that begins with a list"
		}
		counts[entry.Verb]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
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

// proxy stands before the API server, and can be taken away.
type proxy struct {
	t       *testing.T
	handler http.Handler
	address string
	server  *http.Server
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
	p := &proxy{t: t, address: "127.0.0.1:0", handler: pass}
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
	createPod(t, pods, "before", "node-a", "")
	between := newProxy(t)
	p := launch(t, nil, "--kubeconfig", kubeconfigFor(t, "http://"+between.address), "--namespace", namespace)
	p.expect(`^same factory: true`)
	between.cut()
	p.expect(`^no answer, trying again with growing pauses: .*connection refused$`)
	createPod(t, pods, "meanwhile", "node-b", "")
	between.listen()
	p.expect(`^the API server answers again$`)
	p.expect(`^pods by node: node-a=1 node-b=1$`)
	p.signal(syscall.SIGTERM)
	p.ended(0)
}

func TestAnAPIServerThatIsKilledAndStartedAgainIsFollowedOn(t *testing.T) {
	t.Parallel()
	other := variable(t, "EXAMPLES_RESTART_KUBECONFIG")
	namespace, pods := newNamespace(t, other)
	createPod(t, pods, "before", "node-a", "")
	p := launch(t, nil, "--kubeconfig", other, "--namespace", namespace)
	p.expect(`^same factory: true`)
	restart(t)
	p.expect(`^no answer, trying again with growing pauses: .*connection refused$`)
	p.expect(`^the API server answers again$`)
	createPod(t, pods, "after", "node-b", "")
	p.expect(`^pods by node: node-a=1 node-b=1$`)
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
