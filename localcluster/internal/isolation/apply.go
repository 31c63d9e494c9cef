// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace, and Root a folder with a file system that has nft.
type Namespace struct {
	File *os.File
	Root string
}

// Apply hands rules to the kernel, all or none.
func (n Namespace) Apply(ctx context.Context, rules string) error {
	_, err := n.nft(ctx, rules, "--file=-")
	return err
}

// IsWhole tells whether the namespace is cut off from everybody.
func (n Namespace) IsWhole(ctx context.Context) (bool, error) {
	tables, err := n.nft(ctx, "", "list", "tables")
	return strings.Contains(tables, "table inet "+wholeTable+"\n"), err
}

// nft runs nft in the namespace.
func (n Namespace) nft(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "/usr/sbin/nft", args...)
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: n.Root}
	command.Dir, command.Stdin = "/", strings.NewReader(input)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := inside(n.File, command.Start)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output.Bytes()))
	}
	return output.String(), nil
}

// inside does something in a network namespace. What it starts stays in there.
func inside(namespace *os.File, do func() error) error {
	result := make(chan error, 1)
	go func() {
		// The thread, which is in the namespace then, ends with the goroutine that it is locked to.
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		result <- do()
	}()
	return <-result
}
