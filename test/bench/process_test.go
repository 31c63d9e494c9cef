//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"coolops.cn/database-manager/internal/played/remote"
	"coolops.cn/database-manager/test/e2e/audit"
)

// operatorNamespace is where the operator's rights and its lease are.
const operatorNamespace = "database-manager-system"

// runtimeSettings are those of Go's runtime in each process that is measured. They
// are fixed, so that two machines differ in nothing but themselves.
func runtimeSettings() []string { return []string{"GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=off"} }

// program is what is started: the operator or the twin.
type program struct {
	path string
	// account is the name of its ServiceAccount, after "bench-".
	account string
	flags   []string
	// isTwin tells that it serves neither metrics nor profiles.
	isTwin bool
}

// process is a program that runs, as a user of its own for the API server, through
// a proxy of its own.
type process struct {
	program
	*byteProxy
	user    string
	process *os.Process
	began   time.Time
	log     *lockedBuffer
	// metrics and profiles are addresses that it serves on.
	metrics, profiles string
	// ended is closed once it has ended.
	ended chan struct{}
}

// lockedBuffer is a buffer that the process writes while a test reads.
type lockedBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(text)
}

func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.content.Bytes()[max(0, b.content.Len()-4096):])
}

// theOperator is the operator with flags; each account is another user.
func theOperator(account string, flags ...string) program {
	return program{path: env.operator, account: account, flags: flags}
}

// start starts a program, which ends with the test at the latest.
func (p program) start(t *testing.T) *process {
	t.Helper()
	started := &process{program: p, byteProxy: newByteProxy(t), user: identity + p.account, log: &lockedBuffer{}, ended: make(chan struct{})}
	flags := append([]string{"--kubeconfig=" + started.kubeconfig(t)}, p.flags...)
	if !p.isTwin {
		started.metrics, started.profiles = freeAddress(t), freeAddress(t)
		flags = append(flags, "--health-probe-bind-address=0", "--metrics-bind-address="+started.metrics, "--pprof-bind-address="+started.profiles,
			"--leader-elect-namespace="+operatorNamespace)
	}
	command := exec.Command(p.path, flags...)
	command.Stderr = started.log
	command.Env = append(os.Environ(), runtimeSettings()...)
	command.Env = append(command.Env, remote.SocketVariable+"="+env.player.Socket())
	started.began = time.Now()
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", p.path, err)
	}
	started.process = command.Process
	go func() {
		_ = command.Wait() // it may be killed
		close(started.ended)
	}()
	t.Cleanup(func() {
		_ = started.process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-started.ended: // and has given up its lease, which the next one needs
		case <-time.After(10 * time.Second):
			_ = started.process.Kill()
			<-started.ended
		}
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", p.account, started.log.tail())
		}
	})
	return started
}

// freeAddress is one of loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// kubeconfig writes a kubeconfig with which the process is a user of its own, who has
// the operator's rights as config/ grants them, and goes through the proxy.
func (p *process) kubeconfig(t *testing.T) string {
	t.Helper()
	token := p.grant(t)
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: "https://" + p.listener.Addr().String(), CertificateAuthorityData: env.config.CAData}
	config.AuthInfos["account"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "account"}
	config.CurrentContext = "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// grant makes the ServiceAccount, gives it the roles of config/rbac, or what the
// twin needs, and returns a token.
func (p *process) grant(t *testing.T) string {
	t.Helper()
	name := "bench-" + p.account
	accounts := env.kube.CoreV1().ServiceAccounts(operatorNamespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("make a ServiceAccount (is config/manager/namespace.yaml applied?): %v", err)
	}
	role := "database-manager"
	if p.isTwin {
		role = name
		makeTwinsRole(t, role)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: name}}
	_, err = env.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("bind the role %s: %v", role, err)
	}
	_, err = env.kube.RbacV1().RoleBindings(operatorNamespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "database-manager-lease"},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("bind the role of the lease: %v", err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * time.Hour / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	return token.Status.Token
}

// makeTwinsRole makes a ClusterRole with what the twin asks for.
func makeTwinsRole(t *testing.T, name string) {
	t.Helper()
	_, err := env.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status", "foos/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("make the twin's role: %v", err)
	}
}

// end sends a signal, and waits until the process has ended.
func (p *process) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.process.Signal(signal); err != nil {
		t.Fatalf("send %s: %v", signal, err)
	}
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s hasn't ended 30 s after %s", p.account, signal)
	}
}

// awaitLead waits until an operator holds the lease, and has asked for all that it
// watches.
func (p *process) awaitLead(t *testing.T) {
	t.Helper()
	eventually(t, boundFor(1), p.account+" leads", func(context.Context) error {
		if p.metric(t, "leader") != 1 {
			return errors.New("it doesn't")
		}
		return nil
	})
	p.awaitCalm(t, boundFor(1))
}

// requests are those of the process, without the first ones.
func (p *process) requests(without int) []audit.Entry { return env.audit.Of(p.user, without) }

// sent is how many requests the process has sent.
func (p *process) sent() int { return env.audit.Count(p.user) }

// awaitCalm waits until the process has asked for nothing for a while.
func (p *process) awaitCalm(t *testing.T, bound time.Duration) {
	t.Helper()
	calm := p.calmness()
	eventually(t, bound, p.account+" asks for nothing", func(context.Context) error { return calm() })
}

// awaitSettled is awaitCalm that ends after a while, too: what has failed is tried
// again and again.
func (p *process) awaitSettled(t *testing.T, bound time.Duration) {
	t.Helper()
	begun, calm := time.Now(), p.calmness()
	eventually(t, 2*bound, p.account+" asks for nothing", func(context.Context) error {
		if time.Since(begun) > bound {
			return nil
		}
		return calm()
	})
}

// calmness returns what tells whether the process has asked for nothing for a while
// from this call on.
func (p *process) calmness() func() error {
	const calm = 3 * time.Second
	known, since := 0, time.Now()
	return func() error {
		for _, entry := range p.requests(known) {
			known++
			if !isAtRest(entry) {
				since = time.Now()
			}
		}
		if time.Since(since) < calm {
			return errors.New("it still does")
		}
		return nil
	}
}

// clockTicks is how many of its units Linux counts CPU time in per second, for
// programs.
const clockTicks = 100

// cpu is the time that the process has computed for, user and system, to 10 ms.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name of the program, in brackets, may hold blanks; utime is the 14th field.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("read /proc/%d/stat: %v", p.process.Pid, err)
		}
		ticks += number
	}
	return time.Duration(ticks) * time.Second / clockTicks
}

// pss is the memory of the process, shared pages in proportion, in bytes.
func (p *process) pss(t *testing.T) int64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", p.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("smaps_rollup has no Pss")
	return 0
}

// heap is what is alive in the process after a collection, in bytes.
func (p *process) heap(t *testing.T) int64 {
	t.Helper()
	text, err := get(t.Context(), "http://"+p.profiles+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal("the heap's profile doesn't say how much is alive")
	}
	bytes, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// metric is the sum of a metric's values over all of its labels; 0 while it isn't
// served.
func (p *process) metric(t *testing.T, name string) float64 {
	t.Helper()
	text, err := get(t.Context(), "http://"+p.metrics+"/metrics")
	if err != nil {
		return 0
	}
	return sumOf(text, name)
}

// sumOf adds the values of a metric in Prometheus' text format.
func sumOf(text, name string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		rest, isIt := strings.CutPrefix(line, name)
		if !isIt || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64); err == nil {
			sum += value
		}
	}
	return sum
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return string(content), nil
}

// etcdPuts is how often etcd was written to, by anyone; -1 if nobody tells.
func etcdPuts(t *testing.T) float64 {
	t.Helper()
	words := strings.Fields(env.etcd)
	if len(words) == 0 {
		return -1
	}
	text, err := exec.CommandContext(t.Context(), words[0], words[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", env.etcd, err)
	}
	return sumOf(string(text), "etcd_mvcc_put_total")
}

// byteProxy passes connections on to the API server as they are, TLS and all, and
// counts their bytes.
type byteProxy struct {
	listener net.Listener
	// toServer and fromServer are how many bytes have passed.
	toServer, fromServer atomic.Int64
}

func newByteProxy(t *testing.T) *byteProxy {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &byteProxy{listener: listener}
	target := strings.TrimPrefix(env.config.Host, "https://")
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.pass(ctx, client, target) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close() // nobody connects any more
		running.Wait()
	})
	return p
}

func (p *byteProxy) pass(ctx context.Context, client net.Conn, target string) {
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	// When one side ends, so does the other.
	end := sync.OnceFunc(func() { _, _ = client.Close(), server.Close() })
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() {
		defer end()
		_, _ = io.Copy(counted{server, &p.toServer}, client)
	})
	both.Go(func() {
		defer end()
		_, _ = io.Copy(counted{client, &p.fromServer}, server)
	})
	both.Wait()
}

// counted counts what is written.
type counted struct {
	io.Writer
	bytes *atomic.Int64
}

func (c counted) Write(content []byte) (int, error) {
	n, err := c.Writer.Write(content)
	c.bytes.Add(int64(n))
	return n, err
}
