//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// newNetwork makes a network that has a loopback interface and nothing else. It
// is there as long as the file is open, or a process in it.
func newNetwork() (*os.File, error) {
	type result struct {
		network *os.File
		err     error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			r.err = setLoopbackUp()
		}
		if r.err == nil {
			r.network, r.err = os.Open("/proc/thread-self/ns/net")
		}
		made <- r
	}()
	r := <-made
	return r.network, r.err
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

// Dial connects to an address in the member's network, such as 127.0.0.1:5432,
// or, as "unix", to a socket in this machine's file system. It is what the Go
// drivers take as their dialer. The host must be an address, not a name: names
// are looked up by other threads, which are in another network.
func (r *Running) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	dialed := make(chan result)
	go inNetwork(r.network, func(err error) {
		var done result
		if done.err = err; err == nil {
			done.connection, done.err = new(net.Dialer).DialContext(ctx, network, address)
		}
		dialed <- done
	})
	done := <-dialed
	return done.connection, done.err
}
