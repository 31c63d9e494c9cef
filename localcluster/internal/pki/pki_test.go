// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func admin(server string) []Identity {
	return []Identity{{Name: "admin", User: "me", Groups: []string{"system:masters"}, Server: server}}
}

func ensure(t *testing.T, dir, server string) {
	t.Helper()
	if err := Ensure(dir, []net.IP{net.IPv4(127, 0, 0, 1)}, admin(server)); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	result, err := readCertificate(filepath.Join(dir, name+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestCertificatesAreOfTheAuthority(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, "https://127.0.0.1:1")
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, "ca"))
	for name, usage := range map[string]x509.ExtKeyUsage{
		"apiserver": x509.ExtKeyUsageServerAuth, "admin": x509.ExtKeyUsageClientAuth, "apiserver-kubelet-client": x509.ExtKeyUsageClientAuth,
	} {
		if _, err := certificate(t, dir, name).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := certificate(t, dir, "apiserver").VerifyHostname("127.0.0.1"); err != nil {
		t.Error(err)
	}
	// An aggregated API server must not take the cluster's clients for the front proxy.
	if _, err := certificate(t, dir, "front-proxy-client").Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the front proxy's certificate is of the clients' authority")
	}
	subject := certificate(t, dir, "admin").Subject
	if subject.CommonName != "me" || !slices.Equal(subject.Organization, []string{"system:masters"}) {
		t.Errorf("the administrator is %s", subject)
	}
}

func TestARestartKeepsKeysAndFollowsThePort(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, "https://127.0.0.1:1")
	before := map[string][]byte{}
	names := []string{"ca.key", "ca.crt", "sa.key", "admin.crt", "admin.key", "apiserver.crt"}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before[name] = content
	}
	ensure(t, dir, "https://127.0.0.1:2")
	for _, name := range names {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(content, before[name]) {
			t.Errorf("%s has changed (%v)", name, err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil || config.Host != "https://127.0.0.1:2" {
		t.Errorf("the kubeconfig has %v (%v)", config, err)
	}
}

func TestKeysAreTheirOwnersOnly(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, "https://127.0.0.1:1")
	for _, pattern := range []string{"*.key", "*.kubeconfig"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v (%v)", path, info.Mode(), err)
			}
		}
	}
}

func TestABrokenKeyIsNamedWithTheWayOut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sa.key")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Ensure(dir, nil, nil)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "localcluster down") {
		t.Errorf("error is %v", err)
	}
}
