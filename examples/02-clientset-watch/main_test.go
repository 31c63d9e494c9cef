// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// asProgram, in the environment, makes the test binary the program itself, so
// that tests see its exit code and what it does on a signal.
const asProgram = "EXAMPLE_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is one run of the example.
type program struct {
	process *os.Process
	// exited is closed at the end of the process, when code is set.
	exited chan struct{}
	code   int

	mu    sync.Mutex
	lines []string // of stdout and stderr
	read  int      // lines that expect is done with
	more  chan struct{}
}

// start runs it without the environment's own cluster.
func start(t *testing.T, environment []string, arguments ...string) *program {
	t.Helper()
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append([]string{asProgram + "=1", "HOME=" + t.TempDir()}, environment...)
	p := &program{exited: make(chan struct{}), more: make(chan struct{}, 1)}
	output, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close() // the process has its own
	p.process = command.Process
	go func() {
		defer close(p.exited)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			p.add(scanner.Text())
		}
		_ = output.Close()
		_ = command.Wait() // the exit code tells it
		p.code = command.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = p.process.Kill() // which has mostly ended by now
		<-p.exited
		if t.Failed() {
			t.Logf("02-clientset-watch %s printed\n%s", strings.Join(arguments, " "), p.output())
		}
	})
	return p
}

func (p *program) add(line string) {
	p.mu.Lock()
	p.lines = append(p.lines, line)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// expect waits for a line that has all parts, behind those that were expected
// before.
func (p *program) expect(t *testing.T, parts ...string) {
	t.Helper()
	timeout := time.After(2 * time.Minute) // pauses grow to 45 seconds
	for !p.find(parts) {
		select {
		case <-p.more:
		case <-p.exited:
			if !p.find(parts) {
				t.Fatalf("ended with %d, and without a line of %q", p.code, parts)
			}
			return
		case <-timeout:
			t.Fatalf("no line of %q within two minutes", parts)
		}
	}
}

func (p *program) find(parts []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.read < len(p.lines); p.read++ {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(p.lines[p.read], part) }) {
			p.read++
			return true
		}
	}
	return false
}

// expectExit waits for the end of the program.
func (p *program) expectExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("it doesn't end")
	}
	if p.code != code {
		t.Errorf("exit code %d, want %d", p.code, code)
	}
}

// apiServer plays an API server: answer gets each request for the pods. It
// returns the file of a kubeconfig for it.
func apiServer(t *testing.T, answer http.HandlerFunc) (kubeconfig string) {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return writeKubeconfig(t, clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}, clientcmdapi.AuthInfo{})
}

func writeKubeconfig(t *testing.T, cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.Config{
		CurrentContext: "test",
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"test": &cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": &user},
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	emptyList = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}`
	expired   = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
)

// podEvent is an event of a watch, in the API server's form.
func podEvent(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","resourceVersion":%q},"status":{"phase":"Running"}}}`+"\n", kind, name, version)
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body) // what a client does that has gone is its own matter
}

// hold sends events, and keeps the watch open until the client ends it.
func hold(w http.ResponseWriter, r *http.Request, events string) {
	answer(w, http.StatusOK, events)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestAWatchThatEndsGoesOnFromTheLastVersionAlsoThatOfABookmark(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch version := query.Get("resourceVersion"); {
		case query.Get("watch") == "":
			answer(w, http.StatusOK, emptyList)
		case query.Get("allowWatchBookmarks") != "true" || query.Get("timeoutSeconds") != "300":
			http.Error(w, "no bookmarks, or no end", http.StatusTeapot)
		case version == "10":
			answer(w, http.StatusOK, podEvent("ADDED", "a", "11")) // and the stream ends
		case version == "11":
			answer(w, http.StatusOK, podEvent("MODIFIED", "a", "12")+podEvent("BOOKMARK", "", "20"))
		case version == "20":
			hold(w, r, podEvent("DELETED", "a", "21"))
		default:
			http.Error(w, "watch from "+version, http.StatusTeapot)
		}
	})
	p := start(t, nil, "--kubeconfig="+kubeconfig)
	for _, line := range []string{
		"WATCHING from version 10", "ADDED shop/a (Running)", "the watch ended; trying again",
		"WATCHING from version 11", "MODIFIED shop/a (Running)",
		"WATCHING from version 20", "DELETED shop/a (Running)",
	} {
		p.expect(t, line)
	}
	if strings.Contains(p.output(), "BOOKMARK") {
		t.Error("a bookmark is no news")
	}
}

func TestAVersionThatIsTooOldListsAgain(t *testing.T) {
	t.Parallel()
	for sentence, refuse := range map[string]func(w http.ResponseWriter){
		"when the answer says so": func(w http.ResponseWriter) { answer(w, http.StatusGone, expired) },
		"when the watch says so":  func(w http.ResponseWriter) { answer(w, http.StatusOK, `{"type":"ERROR","object":`+expired+`}`) },
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			var lists atomic.Int32
			kubeconfig := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Query().Get("resourceVersion") {
				case "":
					answer(w, http.StatusOK, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d0"}}`, lists.Add(1)))
				case "10":
					refuse(w)
				default:
					hold(w, r, podEvent("ADDED", "late", "21"))
				}
			})
			p := start(t, nil, "--kubeconfig="+kubeconfig)
			p.expect(t, "too old resource version; trying again")
			p.expect(t, "WATCHING from version 20")
			p.expect(t, "ADDED shop/late (Running)")
		})
	}
}

func TestAnotherRefusalOfAWatchKeepsTheVersion(t *testing.T) {
	t.Parallel()
	const slow = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd is slow","reason":"InternalError","code":500}}`
	var lists atomic.Int32
	kubeconfig := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("resourceVersion") {
		case "":
			lists.Add(1)
			answer(w, http.StatusOK, emptyList)
		case "10":
			answer(w, http.StatusOK, podEvent("ADDED", "a", "11")+slow)
		default:
			hold(w, r, podEvent("DELETED", "a", "12"))
		}
	})
	p := start(t, nil, "--kubeconfig="+kubeconfig)
	p.expect(t, "etcd is slow; trying again")
	p.expect(t, "WATCHING from version 11")
	p.expect(t, "DELETED shop/a (Running)")
	if lists.Load() != 1 {
		t.Errorf("%d lists, want one", lists.Load())
	}
}

func TestWhatCantHealEndsTheProgram(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the program turns away
	server.StartTLS()
	t.Cleanup(server.Close)
	untrusted := writeKubeconfig(t, clientcmdapi.Cluster{Server: server.URL}, clientcmdapi.AuthInfo{})
	wrongUser := writeKubeconfig(t, clientcmdapi.Cluster{Server: server.URL}, clientcmdapi.AuthInfo{ClientCertificate: "missing.crt"})
	for sentence, row := range map[string]struct {
		environment, arguments []string
		says                   []string
	}{
		"an unknown CA":                  {nil, []string{"--kubeconfig=" + untrusted}, []string{"kubeconfig's certificate-authority", "unknown authority"}},
		"no kubeconfig, and no pod":      {nil, nil, []string{"no kubeconfig", "no pod", "--kubeconfig"}},
		"a kubeconfig that isn't there":  {nil, []string{"--kubeconfig=missing"}, []string{"read the kubeconfig", "missing"}},
		"a variable that names no file":  {[]string{"KUBECONFIG=missing"}, nil, []string{"no kubeconfig", "--kubeconfig"}},
		"a kubeconfig that is none":      {nil, []string{"--kubeconfig=main.go"}, []string{"read the kubeconfig", "main.go"}},
		"a kubeconfig that lacks a file": {[]string{"KUBECONFIG=" + wrongUser}, nil, []string{"kubeconfig", "missing.crt"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := start(t, row.environment, row.arguments...)
			p.expect(t, row.says...)
			p.expectExit(t, 1)
			if lines := strings.Split(p.output(), "\n"); len(lines) != 1 {
				t.Errorf("%d lines, want one", len(lines))
			}
		})
	}
}

func TestAnAPIServerThatIsntThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := writeKubeconfig(t, clientcmdapi.Cluster{Server: "http://" + address}, clientcmdapi.AuthInfo{})
	p := start(t, nil, "--kubeconfig="+kubeconfig)
	p.expect(t, "no answer", "connection refused; trying again, with growing pauses")
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			answer(w, http.StatusOK, emptyList)
			return
		}
		hold(w, r, "")
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // Serve tells
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	p.expect(t, "WATCHING from version 10")
}

// roundTrip answers requests in place of a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// not parallel, since it reads what is logged.
func TestAnAPIServerThatStaysAwayIsAskedMoreAndMoreSeldom(t *testing.T) {
	var said bytes.Buffer
	log.SetOutput(&said)
	log.SetFlags(0)
	defer log.SetOutput(os.Stderr)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		var asked []time.Duration
		transport := roundTrip(func(*http.Request) (*http.Response, error) {
			asked = append(asked, time.Since(began))
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})
		clientset, err := kubernetes.NewForConfig(&rest.Config{Host: "http://192.0.2.1", Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		(&watcher{clientset: clientset}).run(ctx)
		if quick := asked[1]; quick < 250*time.Millisecond || quick > 750*time.Millisecond {
			t.Errorf("asked again after %s", quick)
		}
		// 3600 seconds, of which each pause takes 15 to 45.
		if len(asked) < 80 || len(asked) > 250 {
			t.Errorf("asked %d times in an hour", len(asked))
		}
		pauses := map[time.Duration]bool{}
		for i := range asked[1:] {
			pauses[asked[i+1]-asked[i]] = true
		}
		if len(pauses) < len(asked)-2 {
			t.Errorf("%d pauses in an hour have only %d lengths", len(asked)-1, len(pauses))
		}
	})
	const want = "no answer, is the kubeconfig's server right and running? dial tcp: connection refused; trying again, with growing pauses\n"
	if said.String() != want {
		t.Errorf("said %q, want %q, once", said.String(), want)
	}
}

func TestASignalEndsTheProgramInOrder(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			answer(w, http.StatusOK, emptyList)
			return
		}
		hold(w, r, "")
	})
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"KUBECONFIG=" + kubeconfig})
			p.expect(t, "WATCHING")
			if err := p.process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			p.expectExit(t, 0)
			if !strings.HasSuffix(p.output(), "WATCHING from version 10") {
				t.Error("it had more to say")
			}
		})
	}
}

func TestTroublesAreExplained(t *testing.T) {
	for sentence, row := range map[string]struct {
		err  error
		want string
	}{
		"a host that no name server knows": {
			fmt.Errorf("list: %w", &url.Error{Op: "Get", URL: "https://nowhere", Err: &net.DNSError{Err: "no such host", Name: "nowhere"}}),
			"no answer, is the kubeconfig's server right and running? lookup nowhere: no such host",
		},
		"credentials that aren't accepted": {
			fmt.Errorf("list: %w", apierrors.NewUnauthorized("Unauthorized")),
			"list: Unauthorized: see whether the kubeconfig's credentials have expired",
		},
		"something else": {
			fmt.Errorf("watch: %w", apierrors.NewInternalError(errors.New("etcd is slow"))),
			"watch: Internal error occurred: etcd is slow",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := explain(row.err); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--help")
	p.expectExit(t, 0)
	if !strings.Contains(p.output(), "-kubeconfig file") {
		t.Error("no -kubeconfig")
	}
}

// lasting is a watch's body that ends, without an event, after five minutes.
type lasting struct{}

func (lasting) Read([]byte) (int, error) {
	<-time.After(5 * time.Minute)
	return 0, io.EOF
}

// not parallel, since it diverts the log.
func TestAfterAWatchThatLastedPausesAreShortAgain(t *testing.T) {
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		requests := 0
		var ended time.Time
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
			switch isWatch := r.URL.Query().Get("watch") == "true"; {
			case requests < 10:
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			case !isWatch:
				answer.Body = io.NopCloser(strings.NewReader(emptyList))
			case ended.IsZero():
				ended = time.Now().Add(5 * time.Minute)
				answer.Body = io.NopCloser(lasting{})
			default:
				if pause := time.Since(ended); pause > 750*time.Millisecond {
					t.Errorf("it paused for %s", pause)
				}
				cancel()
				return nil, context.Canceled
			}
			return answer, nil
		})
		clientset, err := kubernetes.NewForConfig(&rest.Config{Host: "http://192.0.2.1", Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		(&watcher{clientset: clientset}).run(ctx)
	})
}
