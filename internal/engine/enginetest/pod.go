//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Create makes the member's pod, after Delete: with an address that no pod had
// before, empty folders for sockets and temporary files, the volume as it is, and
// the environment of SetEnv. It doesn't wait for the member to serve.
func (r *Running) Create() {
	r.t.Helper()
	if r.hasPod {
		r.t.Fatalf("%s has a pod: delete it first", r.name)
	}
	for _, folder := range []string{r.path("run"), r.path("tmp")} {
		if err := os.RemoveAll(folder); err != nil {
			r.t.Fatalf("empty the pod's folders: %v", err)
		}
	}
	if err := r.layOut(); err != nil {
		r.t.Fatalf("lay out the folders of %s: %v", r.name, err)
	}
	if err := r.join(); err != nil {
		r.t.Fatalf("make the network of %s: %v", r.name, err)
	}
	r.hasPod = true
	r.start()
}

// join makes the pod's network, and gives the pod its seat in the Network.
func (r *Running) join() error {
	namespace, err := newNamespace()
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.namespace = namespace
	r.mu.Unlock()
	if r.seat == nil {
		return os.WriteFile(r.path("names", "hosts"), []byte(loopbackNames+"127.0.0.1 "+r.name+"\n"), 0o644)
	}
	return r.seat.take(namespace)
}

// Delete deletes the member's pod, and leaves the volume. As the kubelet does, it
// runs the engine's Stop and sends SIGTERM, and after the grace SIGKILL; without
// a grace that comes at once. The pod's name and address are gone afterwards.
// (The pause with which a preStop hook begins is left out.)
func (r *Running) Delete(grace time.Duration) Exit {
	r.t.Helper()
	if !r.hasPod {
		r.t.Fatalf("%s has no pod", r.name)
	}
	// Not the test's own context, as in Wait.
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if grace > 0 && r.runs() && r.member.Stop != nil {
		if _, err := r.Exec(ctx, "", r.member.Stop...); err != nil {
			r.t.Logf("stop %s: %v", r.name, err) // the kubelet goes on, too
		}
	}
	if grace > 0 {
		r.Signal(syscall.SIGTERM)
		select {
		case <-r.process.done:
		case <-ctx.Done():
		}
	}
	exit := r.Kill()
	r.hasPod = false
	if r.seat != nil {
		if err := r.seat.leave(); err != nil {
			r.t.Fatalf("take %s off the network: %v", r.name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.namespace.Close(); err != nil {
		r.t.Fatalf("end the network of %s: %v", r.name, err)
	}
	return exit
}

// Replace deletes the member's pod and makes it anew, and returns how the old one
// ended.
func (r *Running) Replace(grace time.Duration) Exit {
	r.t.Helper()
	exit := r.Delete(grace)
	r.Create()
	return exit
}

// LoseVolume empties the member's volume, which no pod may use meanwhile: as when
// a node is gone with its disk, and the claim is made anew.
func (r *Running) LoseVolume() {
	r.t.Helper()
	if r.hasPod {
		r.t.Fatalf("the pod of %s still has its volume: delete it first", r.name)
	}
	entries, err := os.ReadDir(r.DataFolder())
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(r.DataFolder(), entry.Name())))
	}
	if err != nil {
		r.t.Fatalf("empty the volume of %s: %v", r.name, err)
	}
}

// Dial connects from within the member's pod to an address there, such as
// 127.0.0.1:5432, or, as "unix", to a socket in this machine's file system. It is
// what the Go drivers take as their dialer. Nothing that is done to a Network cuts
// these connections. The host must be an address, not a name.
func (r *Running) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	namespace := r.namespace
	r.mu.Unlock()
	connection, err := dialIn(ctx, namespace, network, address)
	if err != nil {
		return nil, fmt.Errorf("in the pod of %s: %w", r.name, err)
	}
	return connection, nil
}
