// SPDX-License-Identifier: Apache-2.0

// Package kwok keeps the program running that plays fake nodes.
package kwok

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

const (
	// restartDelay is how long a kwok that ended by itself stays away.
	restartDelay = time.Second
	// renewals is how often it renews a node's lease within the lease's duration.
	renewals = 4
	// tries is how often a fake node tells that it lives in the time after which it is taken to be lost: a real one does
	// so eight times. Each costs a write.
	tries = 2
)

// Kwok is how the program is started.
type Kwok struct {
	// Program and Kubeconfig are paths; Log is that of a file which its output is added to.
	Program, Kubeconfig, Log string
	// NodeLostAfter is how long nothing is heard of a node until it is taken to be lost, in whole seconds; 0 means that
	// none ever is.
	NodeLostAfter time.Duration
}

// Run keeps the program running until ctx ends. However this process ends, the program does, too.
func (k Kwok) Run(ctx context.Context) error {
	log, err := os.OpenFile(k.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the program writes to its own copy
	// The kernel ends a child together with the thread that started it: this one is kept.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		err := k.command(ctx, log).Run()
		if ctx.Err() != nil {
			return nil
		}
		klog.ErrorS(err, "kwok ended, and is started again", "delay", restartDelay, "log", k.Log)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartDelay):
		}
	}
}

// command is killed when ctx ends: it holds nothing that would have to be finished.
func (k Kwok) command(ctx context.Context, log *os.File) *exec.Cmd {
	command := exec.CommandContext(ctx, k.Program, k.args()...)
	command.Dir, command.Stdout, command.Stderr = "/", log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	return command
}

// args ask for leases where nodes can be lost, so that nodes at rest cost nothing where they can't.
func (k Kwok) args() []string {
	args := []string{"--kubeconfig=" + k.Kubeconfig}
	if k.NodeLostAfter != 0 {
		args = append(args, fmt.Sprintf("--lease-seconds=%d", k.NodeLostAfter*renewals/tries/time.Second))
	}
	return args
}
