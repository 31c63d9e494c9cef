//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// newNamespace makes a network namespace that has a loopback interface and
// nothing else. It is there as long as the file is open, or a process in it.
func newNamespace() (*os.File, error) {
	type result struct {
		namespace *os.File
		err       error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			r.err = setLoopbackUp()
		}
		if r.err == nil {
			r.namespace, r.err = os.Open("/proc/thread-self/ns/net")
		}
		made <- r
	}()
	r := <-made
	return r.namespace, r.err
}

func setLoopbackUp() (err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// inNamespace runs do on a thread of that namespace, which is never used again.
func inNamespace(namespace *os.File, do func(error)) {
	runtime.LockOSThread()
	// Where the file is closed meanwhile, its number may be another one's.
	held, err := namespace.SyscallConn()
	if err == nil {
		var enterErr error
		err = held.Control(func(descriptor uintptr) { enterErr = unix.Setns(int(descriptor), unix.CLONE_NEWNET) })
		err = errors.Join(err, enterErr)
	}
	do(err)
}

// dialIn connects from a namespace. The host must be an address, not a name:
// names are looked up by other threads, which are in another namespace.
func dialIn(ctx context.Context, namespace *os.File, network, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	dialed := make(chan result)
	go inNamespace(namespace, func(err error) {
		var done result
		if done.err = err; err == nil {
			done.connection, done.err = new(net.Dialer).DialContext(ctx, network, address)
		}
		dialed <- done
	})
	done := <-dialed
	return done.connection, done.err
}

// configure has the program ip execute commands in a namespace, each a line. In
// them /proc/self/fd/3 is the other namespace.
func configure(namespace, other *os.File, commands ...string) error {
	configured := make(chan error)
	go inNamespace(namespace, func(err error) {
		if err == nil {
			command := exec.Command("ip", "-batch", "-")
			command.Stdin, command.ExtraFiles = strings.NewReader(strings.Join(commands, "\n")+"\n"), []*os.File{other}
			var printed []byte
			if printed, err = command.CombinedOutput(); err != nil {
				err = fmt.Errorf("ip: %w: %s", err, bytes.TrimSpace(printed))
			}
		}
		configured <- err
	})
	return <-configured
}
