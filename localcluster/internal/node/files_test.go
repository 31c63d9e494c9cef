// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

func TestFilesOfANode(t *testing.T) {
	secrets, root := t.TempDir(), t.TempDir()
	spec := Spec{
		Name: "node-1", Snapshotter: "overlayfs", Cgroup: "localcluster-unit/node-1", LeaseSeconds: 10,
		IP: net.IPv4(172, 31, 255, 11), PodCIDR: "10.244.0.0/24", ClusterCIDR: "10.244.0.0/16",
		KubeletKubeconfig: filepath.Join(secrets, "kubelet"), KubeProxyKubeconfig: filepath.Join(secrets, "kube-proxy"), NetworkPolicyKubeconfig: filepath.Join(secrets, "network-policy"),
		SizedVolumeKubeconfig: filepath.Join(secrets, "sized-volume"), AuthorityFile: filepath.Join(secrets, "ca"),
	}
	for _, path := range []string{spec.KubeletKubeconfig, spec.KubeProxyKubeconfig, spec.NetworkPolicyKubeconfig, spec.SizedVolumeKubeconfig, spec.AuthorityFile} {
		if err := os.WriteFile(path, []byte("content of "+filepath.Base(path)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := spec.writeFiles(root); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/files.txt"
	got := everyFile(t, root)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it anew with -update); got\n%s", path, got)
	}
}

// everyFile is the content of all files below root, in the order of their names.
func everyFile(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&text, "==> %s\n%s\n", strings.TrimPrefix(path, root), content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestAMissingKubeconfigIsNamed(t *testing.T) {
	spec := Spec{KubeletKubeconfig: filepath.Join(t.TempDir(), "none"), KubeProxyKubeconfig: os.DevNull, NetworkPolicyKubeconfig: os.DevNull, SizedVolumeKubeconfig: os.DevNull, AuthorityFile: os.DevNull}
	if err := spec.writeFiles(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}
