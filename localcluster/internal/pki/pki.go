// SPDX-License-Identifier: Apache-2.0

// Package pki writes the certificate authorities, certificates, keys and kubeconfigs of one cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
)

// Identity is a client of the API server: whom its certificate names, and where its kubeconfig points to.
type Identity struct {
	// Name is the stem of the certificate's, key's and kubeconfig's file names.
	Name string
	// User and Groups are what the API server knows the client as.
	User   string
	Groups []string
	// Server is the API server's URL as this client reaches it.
	Server string
}

// Ensure writes into dir what is missing there: authorities, keys and certificates stay as they are when they
// exist, so that tokens and kubelets outlive a restart. Kubeconfigs are written anew. serverIPs are the addresses
// that the API server's certificate is valid for.
func Ensure(dir string, serverIPs []net.IP, identities []Identity) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority, err := ensureAuthority(dir, "ca")
	if err != nil {
		return err
	}
	frontProxy, err := ensureAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if _, err := ensureKey(filepath.Join(dir, "sa.key")); err != nil {
		return err
	}
	err = errors.Join(
		authority.ensure(dir, "apiserver", serverTemplate(serverIPs)),
		authority.ensure(dir, "apiserver-kubelet-client", clientTemplate("kube-apiserver-kubelet-client", "system:masters")),
		frontProxy.ensure(dir, "front-proxy-client", clientTemplate("front-proxy-client")),
	)
	for _, identity := range identities {
		err = errors.Join(err, authority.ensure(dir, identity.Name, clientTemplate(identity.User, identity.Groups...)))
		err = errors.Join(err, authority.writeKubeconfig(dir, identity))
	}
	return err
}

type certificateAuthority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func ensureAuthority(dir, name string) (*certificateAuthority, error) {
	key, err := ensureKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name+".crt")
	if certificate, err := readCertificate(path); err == nil {
		return &certificateAuthority{certificate, key}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localcluster-" + name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, err := sign(path, template, template, key.Public(), key, authorityLifetime)
	return &certificateAuthority{certificate, key}, err
}

// ensure writes name.crt and name.key unless a certificate that is still valid is there.
func (a *certificateAuthority) ensure(dir, name string, template *x509.Certificate) error {
	path := filepath.Join(dir, name+".crt")
	if certificate, err := readCertificate(path); err == nil && time.Now().Before(certificate.NotAfter.Add(-certificateLifetime/2)) {
		return nil
	}
	key, err := ensureKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return err
	}
	_, err = sign(path, template, a.certificate, key.Public(), a.key, certificateLifetime)
	return err
}

func serverTemplate(ips []net.IP) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: ips,
	}
}

func clientTemplate(user string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func sign(path string, template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", path, err)
	}
	if err := writePEM(path, "CERTIFICATE", der, 0o644); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func ensureKey(path string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(path)
	if err == nil {
		block, _ := pem.Decode(content)
		if block == nil {
			return nil, fmt.Errorf("%s holds no PEM block: remove the state folder with `localcluster down`", path)
		}
		return x509.ParseECPrivateKey(block.Bytes)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der, 0o600)
}

func readCertificate(path string) (*x509.Certificate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block: remove the state folder with `localcluster down`", path)
	}
	return x509.ParseCertificate(block.Bytes)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// writeKubeconfig writes a self-contained kubeconfig, which works wherever it is copied to.
func (a *certificateAuthority) writeKubeconfig(dir string, identity Identity) error {
	certificate, err := os.ReadFile(filepath.Join(dir, identity.Name+".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(dir, identity.Name+".key"))
	if err != nil {
		return err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	const name = "localcluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: identity.Server, CertificateAuthorityData: authority}
	config.AuthInfos[identity.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: identity.Name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, filepath.Join(dir, identity.Name+".kubeconfig"))
}
