// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"coolops.cn/database-manager/localcluster/internal/network"
)

//go:embed files
var templates embed.FS

// Paths inside the node.
const (
	kubeletPath   = "/opt/bin/kubelet"
	kubeProxyPath = "/opt/bin/kube-proxy"
	etcKubernetes = "/etc/kubernetes"
	socketPath    = "/run/containerd/containerd.sock"
)

// configFiles are the rendered files, by their path in the node.
func configFiles() map[string]string {
	return map[string]string{
		"/etc/containerd/config.toml":                  "containerd.toml",
		"/etc/containerd/certs.d/docker.io/hosts.toml": "docker.io.toml",
		"/etc/cni/net.d/10-pods.conflist":              "pods.conflist",
		etcKubernetes + "/kubelet.yaml":                "kubelet.yaml",
		etcKubernetes + "/kube-proxy.yaml":             "kube-proxy.yaml",
		"/etc/hosts":                                   "hosts",
		"/etc/passwd":                                  "passwd",
		"/etc/group":                                   "group",
		"/etc/resolv.conf":                             "resolv.conf",
		"/etc/nsswitch.conf":                           "nsswitch.conf",
	}
}

// writeFiles writes the node's configuration below root.
func (s Spec) writeFiles(root string) error {
	parsed, err := template.ParseFS(templates, "files/*")
	if err != nil {
		return err
	}
	data := struct {
		Spec
		PauseImage, DNSAddress, Socket, EtcKubernetes, RegistryAddress string
	}{s, PauseImage, DNSAddress, socketPath, etcKubernetes, network.RegistryAddress()}
	for path, name := range configFiles() {
		var content bytes.Buffer
		if err := parsed.ExecuteTemplate(&content, name, data); err != nil {
			return fmt.Errorf("render %s: %w", name, err)
		}
		if err := writeBelow(root, path, content.Bytes()); err != nil {
			return err
		}
	}
	for path, source := range map[string]string{
		etcKubernetes + "/kubelet.kubeconfig":        s.KubeletKubeconfig,
		etcKubernetes + "/kube-proxy.kubeconfig":     s.KubeProxyKubeconfig,
		etcKubernetes + "/network-policy.kubeconfig": s.NetworkPolicyKubeconfig,
		etcKubernetes + "/sized-volume.kubeconfig":   s.SizedVolumeKubeconfig,
		etcKubernetes + "/ca.crt":                    s.AuthorityFile,
	} {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := writeBelow(root, path, content); err != nil {
			return err
		}
	}
	return nil
}

func writeBelow(root, path string, content []byte) error {
	target := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o600)
}
