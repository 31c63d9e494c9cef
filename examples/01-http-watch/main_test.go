// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
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

func start(t *testing.T, arguments ...string) *program {
	t.Helper()
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), asProgram+"=1")
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
			t.Logf("01-http-watch %s printed\n%s", strings.Join(arguments, " "), p.output())
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

// apiServer plays an API server: answer gets each request for the pods.
type apiServer struct {
	*httptest.Server
	caFile, tokenFile string
}

func newAPIServer(t *testing.T, answer http.HandlerFunc) apiServer {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that turn away
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return apiServer{Server: server, caFile: write(t, "ca.crt", string(ca)), tokenFile: write(t, "token", "secret\n")}
}

// start runs the example against the server.
func (s apiServer) start(t *testing.T) *program {
	t.Helper()
	return start(t, "--server="+s.URL, "--ca-file="+s.caFile, "--token-file="+s.tokenFile)
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
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
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","resourceVersion":%q},"status":{"phase":"Running"}}}`+"\n", kind, name, version)
}

// hold sends events, and keeps the watch open until the client ends it.
func hold(w http.ResponseWriter, r *http.Request, events ...string) {
	for _, event := range events {
		_, _ = io.WriteString(w, event) // what a client does that has gone is its own matter
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestAWatchGoesOnFromTheLastVersionAlsoThatOfABookmark(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch version := query.Get("resourceVersion"); {
		case query.Get("watch") == "":
			_, _ = io.WriteString(w, emptyList)
		case query.Get("allowWatchBookmarks") != "true" || query.Get("timeoutSeconds") != "300":
			http.Error(w, "no bookmarks, or no end", http.StatusTeapot)
		case version == "10":
			_, _ = io.WriteString(w, podEvent("ADDED", "a", "11")) // and the stream ends
		case version == "11":
			_, _ = io.WriteString(w, podEvent("MODIFIED", "a", "12")+podEvent("BOOKMARK", "", "20"))
		case version == "20":
			hold(w, r, podEvent("DELETED", "a", "21"))
		default:
			http.Error(w, "watch from "+version, http.StatusTeapot)
		}
	})
	p := server.start(t)
	for _, line := range []string{
		"WATCHING from version 10", "ADDED default/a (Running)", "the watch ended: EOF",
		"WATCHING from version 11", "MODIFIED default/a (Running)",
		"WATCHING from version 20", "DELETED default/a (Running)",
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
		"when the answer says so": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, expired)
		},
		"when the watch says so": func(w http.ResponseWriter) {
			_, _ = fmt.Fprintf(w, `{"type":"ERROR","object":%s}`, expired)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			var lists atomic.Int32
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Query().Get("resourceVersion") {
				case "":
					_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d0"}}`, lists.Add(1))
				case "10":
					refuse(w)
				default:
					hold(w, r, podEvent("ADDED", "late", "21"))
				}
			})
			p := server.start(t)
			p.expect(t, "410 too old resource version; trying again")
			p.expect(t, "WATCHING from version 20")
			p.expect(t, "ADDED default/late (Running)")
		})
	}
}

func TestAStreamThatBreaksWithinAnEventGoesOn(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("resourceVersion") {
		case "":
			_, _ = io.WriteString(w, emptyList)
		case "10":
			_, _ = io.WriteString(w, podEvent("ADDED", "a", "11")+podEvent("ADDED", "b", "12")[:40])
		default:
			hold(w, r, podEvent("ADDED", "b", "12"))
		}
	})
	p := server.start(t)
	p.expect(t, "ADDED default/a (Running)")
	p.expect(t, "the watch ended: unexpected EOF; trying again")
	p.expect(t, "WATCHING from version 11")
	p.expect(t, "ADDED default/b (Running)")
}

func TestATokenIsReadForEachRequest(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer renewed":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","message":"Unauthorized","code":401}`)
		case r.URL.RawQuery == "":
			_, _ = io.WriteString(w, emptyList)
		default:
			hold(w, r)
		}
	})
	p := server.start(t)
	p.expect(t, "401 Unauthorized: put a valid token into "+server.tokenFile, "trying again")
	if err := os.Remove(server.tokenFile); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "--token-file: open "+server.tokenFile, "no such file", "trying again")
	if err := os.WriteFile(server.tokenFile, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "WATCHING from version 10")
	if strings.Contains(p.output(), "secret") || strings.Contains(p.output(), "renewed") {
		t.Error("a token was printed")
	}
}

func TestAnAnswerOfAnotherProgramIsSaid(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) })
	server.start(t).expect(t, "502 the answer can't be read; trying again")
}

func TestWhatCantHealEndsTheProgram(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent to a server that isn't trusted") })
	ca := anotherCA(t)
	for sentence, row := range map[string]struct {
		arguments []string
		says      []string
	}{
		"an unknown CA":         {[]string{"--server=" + server.URL, "--ca-file=" + ca}, []string{"127.0.0.1", ca, "--ca-file", "unknown authority"}},
		"a CA that isn't there": {[]string{"--ca-file=missing.crt"}, []string{"--ca-file=missing.crt", "outside of a pod"}},
		"a CA that is none":     {[]string{"--ca-file=main.go"}, []string{"--ca-file=main.go"}},
		"no pod, and no flags":  {nil, []string{"--server", "--token-file", "--ca-file"}},
		"plain HTTP":            {[]string{"--server=http://127.0.0.1:1"}, []string{"http://127.0.0.1:1", "https://HOST:PORT"}},
		"no URL":                {[]string{"--server=127.0.0.1:6443"}, []string{"127.0.0.1:6443", "https://HOST:PORT"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := start(t, append([]string{"--token-file=" + server.tokenFile}, row.arguments...)...)
			p.expect(t, row.says...)
			p.expectExit(t, 1)
			if lines := strings.Split(p.output(), "\n"); len(lines) != 1 {
				t.Errorf("%d lines, want one", len(lines))
			}
		})
	}
}

// anotherCA returns the file of a CA that signed nothing but itself.
func anotherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"}, IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "another.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
}

func TestASignalEndsTheProgramInOrder(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			_, _ = io.WriteString(w, emptyList)
			return
		}
		hold(w, r)
	})
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := server.start(t)
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

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	p := start(t, "--help")
	p.expectExit(t, 0)
	for _, name := range []string{"-server", "-token-file", "-ca-file", "-namespace"} {
		if !strings.Contains(p.output(), name+" ") {
			t.Errorf("no %s", name)
		}
	}
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
	tokenFile := write(t, "token", "secret")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		var asked []time.Duration
		client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			asked = append(asked, time.Since(began))
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		})}
		newWatcher(t, client, tokenFile).run(ctx)
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
	const want = "no answer, is --server right and running? dial tcp: connection refused; trying again, with growing pauses\n"
	if said.String() != want {
		t.Errorf("said %q, want %q, once", said.String(), want)
	}
}

// not parallel, since it diverts the log.
func TestAVersionThatIsAlwaysTooOldMakesNoFlood(t *testing.T) {
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	tokenFile := write(t, "token", "secret")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		lists := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			code, body := http.StatusGone, expired
			if r.URL.RawQuery == "" {
				code, body = http.StatusOK, emptyList
				lists++
			}
			return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})}
		newWatcher(t, client, tokenFile).run(ctx)
		if lists < 40 || lists > 125 {
			t.Errorf("%d lists in an hour", lists)
		}
	})
}

func TestAHostThatNoNameServerKnowsIsSaid(t *testing.T) {
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}}
	})}
	const want = "no answer, is --server right and running? dial tcp: lookup nowhere: no such host"
	if err := newWatcher(t, client, write(t, "token", "secret")).ask(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
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
	tokenFile := write(t, "token", "secret")
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
		newWatcher(t, &http.Client{Transport: transport}, tokenFile).run(ctx)
	})
}

func newWatcher(t *testing.T, client *http.Client, tokenFile string) *watcher {
	t.Helper()
	pods, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.1/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{client: client, pods: pods, tokenFile: tokenFile}
}
