//go:build faults

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"coolops.cn/database-manager/internal/played/remote"
)

// operator is a process of the operator's binary, behind a proxy of its own.
type operator struct {
	*proxy
	process *os.Process
	log     *lockedBuffer
	// ended is closed once the process has ended.
	ended chan struct{}
	err   error
}

// lockedBuffer is a buffer that the process writes while a test reads.
type lockedBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// startOperator starts an operator, which ends with the test. judge decides
// about its requests from the first one on.
func startOperator(t *testing.T, judge func(request) verdict, flags ...string) *operator {
	t.Helper()
	return startOperatorSeeing(t, nil, judge, flags...)
}

// startOperatorSeeing starts one that sees something else than there is.
func startOperatorSeeing(t *testing.T, sees *view, judge func(request) verdict, flags ...string) *operator {
	t.Helper()
	o := &operator{proxy: newProxy(t), log: &lockedBuffer{}, ended: make(chan struct{})}
	o.judge, o.view = judge, sees
	flags = append([]string{
		"--kubeconfig=" + o.kubeconfig(t), "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}, flags...)
	command := exec.Command(env.operator, flags...)
	command.Stderr = o.log
	command.Env = append(os.Environ(), remote.SocketVariable+"="+env.player.Socket())
	// kill waits for the process to be known.
	o.mu.Lock()
	err := command.Start()
	o.process = command.Process
	o.kill = func() { _ = o.process.Kill() } // it may have ended
	o.mu.Unlock()
	if err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	go func() {
		o.err = command.Wait()
		close(o.ended)
	}()
	t.Cleanup(func() {
		o.signal(t, syscall.SIGCONT)
		_ = o.process.Kill() // it may have ended
		<-o.ended
		if t.Failed() {
			t.Logf("an operator's log:\n%s", o.log)
		}
	})
	return o
}

// kubeconfig writes a kubeconfig that leads to the proxy.
func (o *operator) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{
		Server: o.server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.server.Certificate().Raw}),
	}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (o *operator) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if o.hasEnded() {
		return
	}
	if err := o.process.Signal(signal); err != nil && !o.hasEnded() {
		t.Errorf("send %s to an operator: %v", signal, err)
	}
}

func (o *operator) hasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// awaitEnd waits until the process has ended.
func (o *operator) awaitEnd(t *testing.T, bound time.Duration) {
	t.Helper()
	select {
	case <-o.ended:
	case <-time.After(bound):
		t.Fatalf("the operator hasn't ended within %s", bound)
	}
}
