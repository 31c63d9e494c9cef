// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// runAsProgram is set in the environment of a copy of the test binary that is to be the program itself.
const runAsProgram = "EXAMPLE_RUN_AS_PROGRAM"

// patience is how long a test waits for anything that must come.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is a process that runs this example.
type program struct {
	t       *testing.T
	command *exec.Cmd
	lines   chan string // of both outputs; closed when the process has ended
	seen    []string
}

// launch runs the program; it is killed at the end of the test, if it still runs by then.
func launch(t *testing.T, environment []string, arguments ...string) *program {
	t.Helper()
	p := &program{t: t, command: exec.CommandContext(t.Context(), os.Args[0], arguments...), lines: make(chan string, 1000)}
	p.command.Env = append(append(os.Environ(), environment...), runAsProgram+"=1")
	output, input := io.Pipe()
	p.command.Stdout, p.command.Stderr = input, input
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // ended looks at the exit code
		_ = input.Close()    // a pipe's Close returns nil
	}()
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	return p
}

// expect returns the next line that matches, with its submatches.
func (p *program) expect(pattern string) []string {
	p.t.Helper()
	expression, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the program ended without a line like %q after:\n%s", pattern, strings.Join(p.seen, "\n"))
			}
			p.seen = append(p.seen, line)
			if match := expression.FindStringSubmatch(line); match != nil {
				return match
			}
		case <-deadline:
			p.t.Fatalf("no line like %q came after:\n%s", pattern, strings.Join(p.seen, "\n"))
		}
	}
}

func (p *program) signal(signal os.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for the end of the program, checks its exit code, and returns all that it printed.
func (p *program) ended(code int) string {
	p.t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case line, ok := <-p.lines:
			if ok {
				p.seen = append(p.seen, line)
				continue
			}
			printed := strings.Join(p.seen, "\n")
			if got := p.command.ProcessState.ExitCode(); got != code {
				p.t.Errorf("the exit code is %d, want %d, after:\n%s", got, code, printed)
			}
			return printed
		case <-deadline:
			p.t.Fatalf("the program didn't end; it printed:\n%s", strings.Join(p.seen, "\n"))
		}
	}
}

// kubeconfigFor writes a kubeconfig for a server that is reached without TLS.
func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	return write(t, *config)
}

func write(t *testing.T, config clientcmdapi.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHelpExplains(t *testing.T) {
	t.Parallel()
	if printed := launch(t, nil, "--help").ended(0); !strings.Contains(printed, "print what became of the pods") || !strings.Contains(printed, "-workers") {
		t.Errorf("--help prints:\n%s", printed)
	}
}

func TestWithoutAClusterItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := launch(t, []string{"HOME=" + t.TempDir(), "KUBECONFIG=", "KUBERNETES_SERVICE_HOST="})
	if printed := p.ended(1); strings.Count(printed, "\n") != 0 || !strings.Contains(printed, "set KUBECONFIG or --kubeconfig") {
		t.Errorf("it prints:\n%s", printed)
	}
}

func TestAServerThatIsNotThereIsWaitedFor(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "--kubeconfig", kubeconfigFor(t, "http://"+address))
	p.expect("^no answer, trying again with growing pauses: .*connection refused$")
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush() // a stream begins, and nothing comes
			<-r.Context().Done()
		}),
	}}
	server.Start()
	defer server.Close()
	p.expect("^the API server answers again$")
	p.signal(syscall.SIGINT)
	if printed := p.ended(0); strings.Count(printed, "\n") != 1 {
		t.Errorf("want a sentence for each; it prints:\n%s", printed)
	}
}

func TestANameThatIsNotKnownIsAskedForAgain(t *testing.T) {
	t.Parallel()
	// A name with an empty label is refused without asking any name server.
	p := launch(t, nil, "--kubeconfig", kubeconfigFor(t, "http://no..host"))
	p.expect("^no answer, trying again with growing pauses: .*no such host$")
	p.signal(syscall.SIGINT)
	if printed := p.ended(0); strings.Count(printed, "\n") != 0 {
		t.Errorf("one sentence is enough; it prints:\n%s", printed)
	}
}

func TestAnOutageIsToldOnce(t *testing.T) { // not in parallel, since it looks at the log
	log := logged(t)
	c, refused := &connection{}, errors.New("connection refused")
	for _, outage := range []error{nil, refused, refused, refused, nil, refused, refused} {
		c.report(t.Context(), nil, outage)
	}
	if got := strings.Count(log.String(), "no answer"); got != 2 {
		t.Errorf("two outages were told of %d times:\n%s", got, log)
	}
}

// logged collects what is logged until the test ends.
func logged(t *testing.T) *strings.Builder {
	t.Helper()
	output := &strings.Builder{}
	log.SetOutput(output)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	return output
}
