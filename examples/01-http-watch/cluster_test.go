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
)

// cluster is a real API server, with a namespace and a service account in it
// that belong to one test.
type cluster struct {
	config            *rest.Config
	kube              kubernetes.Interface
	namespace         string
	caFile, tokenFile string
}

// newCluster connects to the cluster whose kubeconfig the variable names. The
// service account has no rights yet.
func newCluster(t *testing.T, variable string) cluster {
	t.Helper()
	kubeconfig := os.Getenv(variable)
	if kubeconfig == "" {
		t.Fatalf("%s isn't set: run make examples", variable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c := cluster{config: config, caFile: write(t, "ca.crt", string(config.CAData))}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "create a namespace", func(ctx context.Context) error {
		made, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "http-watch-"}}, metav1.CreateOptions{})
		if err == nil {
			c.namespace = made.Name
		}
		return err
	})
	t.Cleanup(func() {
		// The test's own context is done by now.
		repeat(context.Background(), t, "delete the namespace "+c.namespace, c.removeNamespace)
	})
	eventually(t, "create a service account", func(ctx context.Context) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}}
		_, err := c.kube.CoreV1().ServiceAccounts(c.namespace).Create(ctx, account, metav1.CreateOptions{})
		return unlessItExists(err)
	})
	c.tokenFile = write(t, "token", c.newToken(t))
	return c
}

func (c cluster) removeNamespace(ctx context.Context) error {
	err := c.kube.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil // by an attempt whose answer was lost
	}
	return err
}

func (c cluster) newToken(t *testing.T) string {
	t.Helper()
	token := ""
	eventually(t, "create a token", func(ctx context.Context) error {
		request, err := c.kube.CoreV1().ServiceAccounts(c.namespace).CreateToken(ctx, "watcher", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = request.Status.Token
		}
		return err
	})
	return token
}

// allow lets the service account list and watch pods.
func (c cluster) allow(t *testing.T) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "watcher"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "watcher"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "watcher"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "watcher"}},
	}
	eventually(t, "create a role", func(ctx context.Context) error {
		_, err := c.kube.RbacV1().Roles(c.namespace).Create(ctx, role, metav1.CreateOptions{})
		return unlessItExists(err)
	})
	eventually(t, "bind the role", func(ctx context.Context) error {
		_, err := c.kube.RbacV1().RoleBindings(c.namespace).Create(ctx, binding, metav1.CreateOptions{})
		return unlessItExists(err)
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

// start runs the example as the service account.
func (c cluster) start(t *testing.T, server string) *program {
	t.Helper()
	return start(t, "--server="+server, "--ca-file="+c.caFile, "--token-file="+c.tokenFile, "--namespace="+c.namespace)
}

// pod is how the example prints a pod that no node runs.
func (c cluster) pod(name string) string { return c.namespace + "/" + name + " (Pending)" }

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

func TestItPrintsWhatHappensToTheNamespacesPods(t *testing.T) {
	t.Parallel()
	c, elsewhere := newCluster(t, "EXAMPLES_KUBECONFIG"), newCluster(t, "EXAMPLES_KUBECONFIG")
	c.allow(t)
	c.createPod(t, "before")
	p := c.start(t, c.config.Host)
	p.expect(t, "LISTED "+c.pod("before"))
	p.expect(t, "WATCHING from version ")
	elsewhere.createPod(t, "foreign")
	c.createPod(t, "new")
	p.expect(t, "ADDED "+c.pod("new"))
	c.labelPod(t, "new", "blue")
	p.expect(t, "MODIFIED "+c.pod("new"))
	c.deletePod(t, "before")
	p.expect(t, "DELETED "+c.pod("before"))
	if strings.Contains(p.output(), "foreign") {
		t.Error("it printed a pod of another namespace")
	}
}

func TestAWrongTokenIsSaidAndARightOneHealsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	c.allow(t)
	right := c.newToken(t)
	c.tokenFile = write(t, "token", "wrong")
	p := c.start(t, c.config.Host)
	p.expect(t, "401 Unauthorized: put a valid token into "+c.tokenFile)
	if err := os.WriteFile(c.tokenFile, []byte(right), 0o600); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "WATCHING from version ")
	if strings.Contains(p.output(), right) {
		t.Error("the token was printed")
	}
}

func TestMissingRightsAreSaidAndARoleHealsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	p := c.start(t, c.config.Host)
	p.expect(t, "403 pods is forbidden", "system:serviceaccount:"+c.namespace+":watcher", "give it a Role that may list and watch pods; trying again")
	c.allow(t)
	p.expect(t, "WATCHING from version ")
	if said := strings.Count(p.output(), "403"); said != 1 {
		t.Errorf("the same was said %d times", said)
	}
}

func TestAnAPIServerThatTheCADoesntVouchForIsntTrusted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_KUBECONFIG")
	c.caFile = anotherCA(t)
	p := c.start(t, c.config.Host)
	p.expect(t, c.caFile, "unknown authority")
	p.expectExit(t, 1)
}

func TestAnAPIServerThatComesBackIsWatchedOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "EXAMPLES_RESTART_KUBECONFIG")
	c.allow(t)
	c.createPod(t, "before")
	p := c.start(t, c.config.Host)
	p.expect(t, "WATCHING from version ")
	restart(t)
	p.expect(t, "the watch ended")
	p.expect(t, "no answer, is --server right and running?", "connection refused; trying again")
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
	p := c.start(t, wire.url)
	p.expect(t, "WATCHING from version ")
	wire.freeze()
	c.createPod(t, "unseen")
	p.expect(t, "the watch ended", "connection lost")
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
