//go:build examples

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// cluster is a real API server, with a namespace in it that belongs to one test.
type cluster struct {
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	namespace  string
}

// newCluster connects to the cluster whose kubeconfig the variable names.
func newCluster(t *testing.T, variable string) cluster {
	t.Helper()
	c := cluster{kubeconfig: os.Getenv(variable)}
	if c.kubeconfig == "" {
		t.Fatalf("%s isn't set: run make examples", variable)
	}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.config.QPS = -1
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	c.namespace = c.newNamespace(t)
	return c
}

// newNamespace makes a namespace that goes with the test.
func (c cluster) newNamespace(t *testing.T) string {
	t.Helper()
	name := ""
	eventually(t, "create a namespace", func(ctx context.Context) error {
		made, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clientset-watch-"}}, metav1.CreateOptions{})
		if err == nil {
			name = made.Name
		}
		return err
	})
	atEnd(t, "delete the namespace "+name, func(ctx context.Context) error {
		return c.kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
	return name
}

// newToken returns the token of a service account of the namespace.
func (c cluster) newToken(t *testing.T) string {
	t.Helper()
	token := ""
	eventually(t, "create a token", func(ctx context.Context) error {
		request, err := c.kube.CoreV1().ServiceAccounts(c.namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = request.Status.Token
		}
		return err
	})
	return token
}

// allow lets the service account list and watch pods of all namespaces.
func (c cluster) allow(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "default"}},
	}
	rbac := c.kube.RbacV1()
	eventually(t, "create a role", func(ctx context.Context) error {
		_, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		return unlessItExists(err)
	})
	atEnd(t, "delete the role", func(ctx context.Context) error {
		return rbac.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})
	})
	eventually(t, "bind the role", func(ctx context.Context) error {
		_, err := rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		return unlessItExists(err)
	})
	atEnd(t, "delete the binding", func(ctx context.Context) error {
		return rbac.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
	})
}

// atEnd repeats undo, after the test, until it succeeds.
func atEnd(t *testing.T, what string, undo func(ctx context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		// The test's own context is done by now.
		repeat(context.Background(), t, what, func(ctx context.Context) error {
			if err := undo(ctx); !apierrors.IsNotFound(err) {
				return err
			}
			return nil // by an attempt whose answer was lost
		})
	})
}

func (c cluster) createPod(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	// It is refused until the namespace has its default service account.
	eventually(t, "create the pod "+name, func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return unlessItExists(err)
	})
}

func (c cluster) labelPod(t *testing.T, name, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"color":%q}}}`, value)
	eventually(t, "label the pod "+name, func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Pods(c.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func (c cluster) deletePod(t *testing.T, name string) {
	t.Helper()
	eventually(t, "delete the pod "+name, func(ctx context.Context) error {
		err := c.kube.CoreV1().Pods(c.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if apierrors.IsNotFound(err) {
			return nil // by an attempt whose answer was lost
		}
		return err
	})
}

// pod is how the example prints a pod that no node runs.
func (c cluster) pod(name string) string { return c.namespace + "/" + name + " (Pending)" }

// kubeconfigWith returns a kubeconfig for the cluster with another server, CA
// or user.
func (c cluster) kubeconfigWith(t *testing.T, server string, ca []byte, user clientcmdapi.AuthInfo) string {
	t.Helper()
	return writeKubeconfig(t, clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}, user)
}

func unlessItExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// eventually repeats try until it succeeds. The API server may be away for a
// while, since tests restart it.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	repeat(t.Context(), t, what, try)
}

func repeat(ctx context.Context, t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		if err := try(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute: %v", what, last)
		case <-ticker.C:
		}
	}
}

func TestItPrintsWhatHappensToThePodsOfAllNamespaces(t *testing.T) {
	t.Parallel()
	c, elsewhere := newCluster(t, "EXAMPLES_KUBECONFIG"), newCluster(t, "EXAMPLES_KUBECONFIG")
	c.createPod(t, "before")
	p := start(t, []string{"KUBECONFIG=" + c.kubeconfig})
	p.expect(t, "LISTED "+c.pod("before"))
	p.expect(t, "WATCHING from version ")
	c.createPod(t, "new")
	p.expect(t, "ADDED "+c.pod("new"))
	elsewhere.createPod(t, "other")
	p.expect(t, "ADDED "+elsewhere.pod("other"))
	c.labelPod(t, "new", "blue")
	p.expect(t, "MODIFIED "+c.pod("new"))
	c.deletePod(t, "before")
	p.expect(t, "DELETED "+c.pod("before"))
}

func TestAWrongTokenIsSaidAndARightOneHealsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	c.allow(t)
	right := c.newToken(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	writeFile(t, tokenFile, "wrong")
	p := start(t, nil, "--kubeconfig="+c.kubeconfigWith(t, c.config.Host, c.config.CAData, clientcmdapi.AuthInfo{TokenFile: tokenFile}))
	p.expect(t, "Unauthorized: see whether the kubeconfig's credentials have expired; trying again")
	writeFile(t, tokenFile, right)
	// client-go reads it again 50 seconds after the last time.
	p.expect(t, "WATCHING from version ")
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMissingRightsAreSaidAndARoleHealsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	p := start(t, nil, "--kubeconfig="+c.kubeconfigWith(t, c.config.Host, c.config.CAData, clientcmdapi.AuthInfo{Token: c.newToken(t)}))
	p.expect(t, "pods is forbidden", "system:serviceaccount:"+c.namespace+":default", "give it a ClusterRole that may list and watch pods; trying again")
	c.allow(t)
	p.expect(t, "WATCHING from version ")
	if said := strings.Count(p.output(), "forbidden"); said != 1 {
		t.Errorf("the same was said %d times", said)
	}
}

func TestAnAPIServerThatTheCADoesntVouchForIsntTrusted(t *testing.T) {
	t.Parallel()
	c, other := newCluster(t, "EXAMPLES_KUBECONFIG"), newCluster(t, "EXAMPLES_RESTART_KUBECONFIG")
	p := start(t, nil, "--kubeconfig="+c.kubeconfigWith(t, c.config.Host, other.config.CAData, clientcmdapi.AuthInfo{}))
	p.expect(t, "kubeconfig's certificate-authority", "unknown authority")
	p.expectExit(t, 1)
}

func TestAnAPIServerThatComesBackIsWatchedOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_RESTART_KUBECONFIG")
	c.createPod(t, "before")
	p := start(t, []string{"KUBECONFIG=" + c.kubeconfig})
	p.expect(t, "WATCHING from version ")
	restart(t)
	p.expect(t, "no answer, is the kubeconfig's server right and running?", "connection refused; trying again")
	p.expect(t, "WATCHING from version ")
	// Whether it is listed or added depends on whether the version was too old.
	c.createPod(t, "after")
	p.expect(t, c.pod("after"))
	c.deletePod(t, "before")
	p.expect(t, "DELETED "+c.pod("before"))
}

// restart runs the command that takes the API server away for three seconds.
func restart(t *testing.T) {
	t.Helper()
	command := os.Getenv("EXAMPLES_RESTART")
	if command == "" {
		t.Fatal("EXAMPLES_RESTART isn't set: run make examples")
	}
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

func TestAConnectionThatDiedSilentlyIsFound(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	c.allow(t)
	wire := newWire(t, c.config.Host)
	kubeconfig := c.kubeconfigWith(t, wire.url, c.config.CAData, clientcmdapi.AuthInfo{Token: c.newToken(t)})
	// client-go takes 30 and 15 seconds.
	p := start(t, []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=5", "HTTP2_PING_TIMEOUT_SECONDS=5", "KUBECONFIG=" + kubeconfig})
	p.expect(t, "WATCHING from version ")
	wire.freeze()
	c.createPod(t, "unseen")
	p.expect(t, "connection lost", "trying again")
	p.expect(t, "WATCHING from version ")
	p.expect(t, "ADDED "+c.pod("unseen"))
}

// wire carries connections to an API server, until they are frozen: then they
// stay open, and nothing gets through, as when a cable is pulled or a firewall
// has forgotten them. New ones work.
type wire struct {
	url string

	mu     sync.Mutex
	frozen chan struct{}
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w := &wire{url: "https://" + listener.Addr().String(), frozen: make(chan struct{})}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			far, err := net.Dial("tcp", target.Host)
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() { _, _ = near.Close(), far.Close() })
			w.mu.Lock()
			frozen := w.frozen
			w.mu.Unlock()
			go carry(near, far, frozen)
			go carry(far, near, frozen)
		}
	}()
	return w
}

// carry copies until the end of a connection, which it passes on unless frozen.
func carry(to io.WriteCloser, from io.Reader, frozen <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-frozen:
			if err != nil {
				return
			}
			continue // swallow it
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.frozen)
	w.frozen = make(chan struct{})
}
