//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Freeze stops all processes of the member in the middle of what they do, as a
// machine does that stands still. The kernel still takes connections and bytes
// for them. It returns when they all stand.
func (r *Running) Freeze() {
	r.t.Helper()
	if !r.runs() {
		r.t.Fatalf("%s doesn't run", r.name)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		// One that was just being started is found the next time.
		stands, err := r.signalMoving(syscall.SIGSTOP)
		if err != nil {
			r.t.Fatalf("freeze %s: %v", r.name, err)
		}
		if stands {
			return
		}
		pause, cancel := context.WithTimeout(ctx, time.Millisecond)
		<-pause.Done()
		cancel()
		if ctx.Err() != nil {
			r.t.Fatalf("%s doesn't stand still within %s", r.name, patience)
		}
	}
}

// Thaw has the member's processes go on.
func (r *Running) Thaw() {
	r.t.Helper()
	processes, err := r.processes()
	for _, pid := range processes {
		err = errors.Join(err, send(pid, syscall.SIGCONT))
	}
	if err != nil {
		r.t.Fatalf("thaw %s: %v", r.name, err)
	}
}

// signalMoving sends a signal to those of the member's processes that don't
// stand, and tells whether there were none.
func (r *Running) signalMoving(signal syscall.Signal) (stands bool, err error) {
	processes, err := r.processes()
	stands = true
	for _, pid := range processes {
		moves, movesErr := anyThreadMoves(pid)
		err = errors.Join(err, movesErr)
		if moves {
			stands = false
			err = errors.Join(err, send(pid, signal))
		}
	}
	return stands, err
}

// send is happy with a process that has just ended.
func send(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", signal, pid, err)
	}
	return nil
}

// processes are those in the process namespace of the member, as this machine
// numbers them.
func (r *Running) processes() ([]int, error) {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", r.process.pid))
	if err != nil {
		return nil, err
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, link := range links {
		if namespace, err := os.Readlink(link); err != nil || namespace != own {
			continue // another's, or gone meanwhile
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			return nil, err
		}
		found = append(found, pid)
	}
	return found, nil
}

// anyThreadMoves tells whether a process has a thread that is neither stopped nor
// at its end.
func anyThreadMoves(pid int) (bool, error) {
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, file := range states {
		content, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which stands in parentheses and may hold some.
		_, rest, _ := strings.Cut(string(content[strings.LastIndexByte(string(content), ')'):]), " ")
		if state := rest[0]; state != 'T' && state != 'Z' && state != 'X' {
			return true, nil
		}
	}
	return false, nil
}
