//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed enter.sh
var enterScript string

// process is one life of a member, from a start to its end.
type process struct {
	pid    int
	output *output
	// done is closed when all processes have ended; exit is set then.
	done chan struct{}
	exit Exit
}

// Exit tells how a member's first process ended.
type Exit struct {
	// Code is the exit code, or 128 and the number of the signal, as the kubelet
	// reports it.
	Code int
	// Output is all that the member printed in this life.
	Output string
}

// output is what was printed, which may be read while more is.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(printed []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(printed)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the member's first process, and waits until its container is
// laid out. What the member itself does with it is still to come.
func (r *Running) start() {
	r.t.Helper()
	termination, enter := r.path("termination-log"), r.path("enter.sh")
	if err := errors.Join(
		os.WriteFile(termination, nil, 0o666), os.Chmod(termination, 0o666), // whatever the umask
		os.WriteFile(enter, []byte(enterScript), 0o600),
	); err != nil {
		r.t.Fatal(err)
	}
	ready, readyHere, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = ready.Close() }() // it was only read
	printed := &output{}
	command := exec.Command("/bin/sh", append([]string{enter, r.name, r.root, r.folder, r.DataFolder()}, r.member.Command...)...)
	command.Env, command.Stdout, command.Stderr, command.ExtraFiles = r.environment(), printed, printed, []*os.File{readyHere}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	r.process = &process{output: printed, done: make(chan struct{})}
	err = r.process.run(command, r.namespace)
	_ = readyHere.Close() // nothing is written by this process
	if err != nil {
		r.t.Fatalf("start a member of %s: %v", r.member.Image, err)
	}
	if _, err := io.Copy(io.Discard, ready); err != nil {
		r.t.Fatalf("wait for the member's container: %v", err)
	}
}

// run starts the command in the namespace, and returns when it runs. The thread
// that started it lives as long as it does, since the kernel kills the process
// when that thread ends: so a member never outlives the test's process.
func (p *process) run(command *exec.Cmd, namespace *os.File) error {
	started := make(chan error)
	go inNamespace(namespace, func(err error) {
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			started <- err
			return
		}
		p.pid = command.Process.Pid
		started <- nil
		err = command.Wait()
		code := command.ProcessState.ExitCode()
		if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = 128 + int(status.Signal())
		}
		var exited *exec.ExitError
		if err != nil && !errors.As(err, &exited) {
			_, _ = fmt.Fprintf(p.output, "wait for the member: %v\n", err) // into memory
		}
		p.exit = Exit{Code: code, Output: p.output.String()}
		close(p.done)
	})
	return <-started
}

// runs tells whether any process of the container is there.
func (r *Running) runs() bool {
	select {
	case <-r.process.done:
		return false
	default:
		return true
	}
}

// Output returns what the member has printed since it was started last.
func (r *Running) Output() string { return r.process.output.String() }

// Signal sends a signal to the member's first process. Like any first process
// it gets no signal that it has no handler for, SIGKILL excepted.
func (r *Running) Signal(signal syscall.Signal) {
	r.t.Helper()
	if !r.runs() {
		return
	}
	if err := syscall.Kill(r.process.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		r.t.Fatalf("send %v to the member: %v", signal, err)
	}
}

// Wait waits until the member has ended by itself, or by a signal.
func (r *Running) Wait() Exit {
	r.t.Helper()
	// Not the test's own context, which is done when members are cleaned up.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-r.process.done:
	case <-ctx.Done():
		r.t.Fatalf("the member still runs after %s; it has printed\n%s", patience, r.Output())
	}
	return r.process.exit
}

// Stop sends SIGTERM, as the kubelet does, and waits for the end.
func (r *Running) Stop() Exit {
	r.t.Helper()
	r.Signal(syscall.SIGTERM)
	return r.Wait()
}

// Kill ends the member by SIGKILL, and waits for the end.
func (r *Running) Kill() Exit {
	r.t.Helper()
	r.Signal(syscall.SIGKILL)
	return r.Wait()
}

// Exec runs a command in the member's container, as the kubelet runs a probe,
// with an input. It returns what the command printed to both outputs.
func (r *Running) Exec(ctx context.Context, input string, command ...string) (string, error) {
	// Entering the process namespace needs a process of its own: nsenter waits
	// for it, and hands its exit code on.
	args := []string{
		"--target=" + strconv.Itoa(r.process.pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wdns=/",
		"setpriv", "--reuid=" + strconv.Itoa(user), "--regid=" + strconv.Itoa(group), "--clear-groups", "--no-new-privs",
		"--inh-caps=-all", "--bounding-set=-all",
	}
	run := exec.CommandContext(ctx, "nsenter", append(args, command...)...)
	run.Env, run.Stdin, run.WaitDelay = r.environment(), strings.NewReader(input), time.Second
	printed, err := run.CombinedOutput()
	if err != nil {
		return string(printed), fmt.Errorf("run %s in the member: %w: %s", command[0], err, bytes.TrimSpace(printed))
	}
	return string(printed), nil
}

// WaitFor runs a command in the member's container until it succeeds, such as
// Engine.Probe. A member that ends meanwhile fails the test.
func (r *Running) WaitFor(command ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		_, err := r.Exec(ctx, "", command...)
		if err == nil {
			return
		}
		pause, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		select {
		case <-r.process.done:
			r.t.Fatalf("the member ended with %d before it served", r.process.exit.Code)
		case <-pause.Done():
		}
		cancel()
		if ctx.Err() != nil {
			r.t.Fatalf("the member doesn't serve within %s: %v", patience, err)
		}
	}
}
