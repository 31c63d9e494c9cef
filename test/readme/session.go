// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options say how a session is played.
type Options struct {
	// Dir is the folder that the shell begins in.
	Dir string
	// Env are the shell's variables.
	Env []string
	// Transcript is told what is typed and printed, as it happens.
	Transcript io.Writer
	// PrintTimeout is how long a line may take, counted from the end of the command that it stands under; a command in
	// the foreground has CommandTimeout.
	PrintTimeout, CommandTimeout time.Duration
	// EndTimeout is how long programs that were told to end may take after the last command.
	EndTimeout time.Duration
}

// Session is a shell that commands are typed into.
type Session struct {
	options Options
	shell   *exec.Cmd
	input   io.WriteCloser
	// sentinel marks the end of a command in what is printed.
	sentinel string
	// pipes are where the two sources print to.
	pipes map[source]*os.File
	// count is how many commands were typed.
	count  int
	events chan event
	// ended is closed when the shell has ended.
	ended chan struct{}
	// closing is closed when nobody waits for events any more.
	closing chan struct{}
	folder  string
}

// source is who prints: the commands that the shell waits for, or those that it doesn't.
type source string

const (
	foreground source = "foreground"
	background source = "background"
)

// event is a line that was printed, or a mark of the driver's.
type event struct {
	source source
	line   string
	mark   mark
	// number is which command begins, or the exit code of the one that ends.
	number int
}

type mark string

const (
	// begins is printed by both sources: what comes after it was printed since the command began.
	begins mark = "begins"
	ends   mark = "ends"
)

// driver is what the shell runs: it reads commands from descriptor 3, so that programs can't eat them, and knows no
// jobs that have ended, as a shell that prompts. Each command finds the exit code of the one before in $?.
const driver = `set -m
__readme_code=0 __readme_number=0
__readme_code() { return "$__readme_code"; }
while IFS= read -r -d '' -u 3 __readme_source && IFS= read -r -d '' -u 3 __readme_command; do
	jobs >/dev/null
	__readme_number=$((__readme_number + 1))
	for __readme_pipe in foreground background; do
		printf '%s begins %d\n' "$__readme_sentinel" "$__readme_number" >"$__readme_folder/$__readme_pipe"
	done
	exec >"$__readme_folder/$__readme_source" 2>&1
	__readme_code
	eval "$__readme_command"
	__readme_code=$?
	printf '%s ends %d\n' "$__readme_sentinel" "$__readme_code"
done
`

// Start starts a shell.
func Start(options Options) (*Session, error) {
	folder, err := os.MkdirTemp("", "readme-")
	if err != nil {
		return nil, err
	}
	s := &Session{
		options: options, folder: folder, sentinel: "\x1e" + rand.Text(), pipes: map[source]*os.File{},
		events: make(chan event), ended: make(chan struct{}), closing: make(chan struct{}),
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Session) start() error {
	for _, source := range []source{foreground, background} {
		path := filepath.Join(s.folder, string(source))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			return fmt.Errorf("make a pipe for the shell: %w", err)
		}
		// Opened for writing, too: it doesn't end when a program ends.
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		s.pipes[source] = pipe
	}
	commands, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = commands.Close() }() // the shell has its own copy
	s.input = input
	s.shell = exec.Command("bash", "--norc", "--noprofile", "-c", driver)
	s.shell.Dir, s.shell.Env = s.options.Dir, slices.Concat(s.options.Env, []string{"__readme_sentinel=" + s.sentinel, "__readme_folder=" + s.folder})
	s.shell.Stdout, s.shell.Stderr = s.pipes[foreground], s.pipes[foreground]
	s.shell.ExtraFiles = []*os.File{commands}
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.shell.Start(); err != nil {
		return fmt.Errorf("start a shell: %w", err)
	}
	go func() {
		_ = s.shell.Wait() // that it has ended is all that matters
		close(s.ended)
	}()
	for source, pipe := range s.pipes {
		go s.read(source, pipe)
	}
	return nil
}

// read makes events of what is printed into a pipe.
func (s *Session) read(source source, pipe io.Reader) {
	reader := bufio.NewReader(pipe)
	for {
		text, err := reader.ReadString('\n')
		if err != nil {
			return // it was closed
		}
		line, marked, isMarked := strings.Cut(strings.TrimRight(text, "\r\n"), s.sentinel+" ")
		if line != "" || !isMarked {
			s.send(event{source: source, line: line})
		}
		if isMarked {
			kind, number, _ := strings.Cut(marked, " ")
			count, _ := strconv.Atoi(number) // printed by printf %d
			s.send(event{source: source, mark: mark(kind), number: count})
		}
	}
}

func (s *Session) send(e event) {
	select {
	case s.events <- e:
	case <-s.closing:
	}
}

// Play types the commands, one after the other, and returns an error at the first that doesn't do what it should.
func (s *Session) Play(ctx context.Context, commands []Command) error {
	for _, command := range commands {
		if err := s.play(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// play types one command, and waits for its end and its lines.
func (s *Session) play(ctx context.Context, command Command) error {
	s.tell("$ " + command.Text)
	s.count++
	if _, err := fmt.Fprintf(s.input, "%s\x00%s\x00", sourceOf(command.Text), command.Text); err != nil {
		return fmt.Errorf("%s:%d: type a command: %w", command.Path, command.Line, err)
	}
	var seen printed
	isRunning, begun := true, 0
	timeout := time.NewTimer(s.options.CommandTimeout)
	defer timeout.Stop()
	for {
		select {
		case e := <-s.events:
			switch {
			case e.mark == begins && e.number == s.count:
				begun++
				seen.forget(e.source)
			case e.mark == ends && e.number != 0:
				return seen.failed(command, fmt.Sprintf("it ends with exit code %d", e.number))
			case e.mark == ends:
				isRunning = false
				timeout.Reset(s.options.PrintTimeout)
			case e.mark == "":
				s.tell(e.line)
				seen.add(e)
			}
			if !isRunning && begun == len(s.pipes) && seen.met(command.Expect) == len(command.Expect) {
				return nil
			}
		case <-timeout.C:
			if isRunning {
				return seen.failed(command, fmt.Sprintf("it hasn't ended within %s", s.options.CommandTimeout))
			}
			return seen.missing(command, s.options.PrintTimeout)
		case <-s.ended:
			return seen.failed(command, "the shell has ended")
		case <-ctx.Done():
			return seen.failed(command, "it was interrupted: "+context.Cause(ctx).Error())
		}
	}
}

// sourceOf tells whether the shell waits for a command: not for one with an & that is neither && nor a redirection.
func sourceOf(command string) source {
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"`)
	if regexp.MustCompile(`(?m)(^|[^&<>\\])&($|[^&>])`).MatchString(quoted.ReplaceAllString(command, "")) {
		return background
	}
	return foreground
}

func (s *Session) tell(text string) {
	_, _ = io.WriteString(s.options.Transcript, text+"\n") // a lost line of the transcript harms nothing
}

// forget is for what a source printed before the command began.
func (p *printed) forget(source source) {
	if source == background {
		p.background = nil
		return
	}
	p.foreground = nil
}

func (p *printed) add(e event) {
	if e.source == background {
		p.background = append(p.background, e.line)
		return
	}
	p.foreground = append(p.foreground, e.line)
}

// failed is the error of a command that doesn't do what it should.
func (p printed) failed(command Command, why string) error {
	return fmt.Errorf("%s:%d: $ %s\n%s. %s", command.Path, command.Line, command.Text, why, p)
}

// missing is the error of a line that wasn't printed.
func (p printed) missing(command Command, timeout time.Duration) error {
	count := p.met(command.Expect)
	expected := command.Expect[count]
	message := fmt.Sprintf("%s:%d: not printed within %s by line %d's command, or not in this order: \n\t%s\n",
		command.Path, expected.Line, timeout, command.Line, expected.Text)
	if count > 0 {
		message += fmt.Sprintf("%d lines before it were printed, up to: %s\n", count, command.Expect[count-1].Text)
	}
	return errors.New(message + p.String())
}

// String is what was printed, or the end of it.
func (p printed) String() string {
	const most = 40
	var text strings.Builder
	for _, source := range []struct {
		name  string
		lines []string
	}{{"In the foreground", p.foreground}, {"In the background", p.background}} {
		if len(source.lines) > 0 {
			fmt.Fprintf(&text, "%s was printed:\n", source.name)
		}
		if left := len(source.lines) - most; left > 0 {
			fmt.Fprintf(&text, "\t(%d lines)\n", left)
		}
		for _, line := range source.lines[max(0, len(source.lines)-most):] {
			text.WriteString("\t" + line + "\n")
		}
	}
	if text.Len() == 0 {
		return "Nothing was printed."
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// End waits until nothing that was started in the shell runs, and reports what does.
func (s *Session) End(ctx context.Context) error {
	timeout := time.NewTimer(s.options.EndTimeout)
	defer timeout.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := s.processes()
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case e := <-s.events:
			s.tell(e.line)
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("left running: %s", strings.Join(left, "; "))
		}
	}
}

// Close ends the shell and all that was started in it.
func (s *Session) Close() error {
	close(s.closing)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	// Whoever starts another before it is killed has it killed in the next round.
	for {
		left, err := s.kill()
		if err != nil || left == 0 {
			<-s.ended
			return errors.Join(err, s.release())
		}
		select {
		case <-tick.C:
		case <-deadline:
			return errors.Join(fmt.Errorf("%d processes of the shell don't end", left), s.release())
		}
	}
}

func (s *Session) release() error {
	var errs []error
	if s.input != nil {
		errs = append(errs, s.input.Close())
	}
	for _, pipe := range s.pipes {
		errs = append(errs, pipe.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

// kill ends every process of the session, and tells how many there were.
func (s *Session) kill() (int, error) {
	leader := s.shell.Process.Pid
	pids, err := sessionOf(leader)
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		// Held first and looked at again then: a number may be another's by now.
		process, err := os.FindProcess(pid)
		if err != nil {
			return 0, err
		}
		if isOf(pid, leader) {
			err = process.Kill()
		}
		_ = process.Release() // it was only used to send a signal
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return 0, err
		}
	}
	return len(pids), nil
}

// processes are those that were started in the shell, but for itself.
func (s *Session) processes() ([]string, error) {
	pids, err := sessionOf(s.shell.Process.Pid)
	var left []string
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if pid == s.shell.Process.Pid || err != nil {
			continue
		}
		left = append(left, fmt.Sprintf("%d %s", pid, bytes.TrimSpace(bytes.ReplaceAll(content, []byte{0}, []byte{' '}))))
	}
	return left, err
}

// sessionOf are the processes that live of the session that leader leads.
func sessionOf(leader int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(filepath.Base(entry)); err == nil && isOf(pid, leader) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isOf tells whether a process lives and is of the session.
func isOf(pid, leader int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state ppid pgrp session; the name may hold anything.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	return len(fields) > 3 && fields[0] != "Z" && fields[3] == strconv.Itoa(leader)
}
