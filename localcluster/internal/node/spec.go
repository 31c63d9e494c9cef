// SPDX-License-Identifier: Apache-2.0

// Package node runs one Kubernetes node: containerd, kubelet, kube-proxy, what enforces NetworkPolicies and what
// makes volumes with a size, in namespaces of their own, on a root file system of Debian packages. When the node's first process ends, the kernel
// ends and unmounts all the rest.
package node

import (
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Spec describes a node to the process that becomes it.
type Spec struct {
	// Name is the node's name and host name.
	Name string `json:"name"`
	// Dir is the node's part of the state folder.
	Dir string `json:"dir"`
	// RootFS is the folder of the root file system in the cache; it is only read.
	RootFS string `json:"rootFS"`
	// Kubelet and KubeProxy are the paths of the binaries.
	Kubelet   string `json:"kubelet"`
	KubeProxy string `json:"kubeProxy"`
	// Kubeconfigs of the node's programs, and the cluster's certificate authority.
	KubeletKubeconfig       string `json:"kubeletKubeconfig"`
	KubeProxyKubeconfig     string `json:"kubeProxyKubeconfig"`
	NetworkPolicyKubeconfig string `json:"networkPolicyKubeconfig"`
	SizedVolumeKubeconfig   string `json:"sizedVolumeKubeconfig"`
	AuthorityFile           string `json:"authorityFile"`
	// Volumes is the folder of the node's local volumes, and Disks that of those with a size.
	Volumes string `json:"volumes"`
	Disks   string `json:"disks"`
	// Logs is the folder of the components' logs.
	Logs string `json:"logs"`
	// Cgroup is the path of the node's group below each cgroup mount.
	Cgroup string `json:"cgroup"`
	// LeaseSeconds is for how long the kubelet says that the node lives; it says so anew in a quarter of that time.
	LeaseSeconds int `json:"leaseSeconds"`
	// Snapshotter is what containerd keeps its images and containers with.
	Snapshotter string `json:"snapshotter"`
	// IP and PodCIDR are the node's address and its pods' range; ClusterCIDR is that of all nodes' pods.
	IP          net.IP `json:"ip"`
	PodCIDR     string `json:"podCIDR"`
	ClusterCIDR string `json:"clusterCIDR"`
}

// AliveFile is locked by the node's first process; by it the node is found from outside.
func (s Spec) AliveFile() string { return filepath.Join(s.Dir, "alive") }

// The hidden commands by which this program serves a node.
const (
	// NetworkPolicyCommand enforces NetworkPolicies.
	NetworkPolicyCommand = "internal-network-policy"
	// SizedVolumeCommand makes and grows volumes that have a size.
	SizedVolumeCommand = "internal-sized-volume"
)

// PauseImage holds a pod's namespaces.
const PauseImage = "localcluster.internal/pause:1"

// DNSAddress is the Service address of the cluster's DNS.
const DNSAddress = "10.96.0.10"

// SnapshotterFor chooses a snapshotter for a folder: an overlay can't lie on an overlay, as a container's own files do.
func SnapshotterFor(dir string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}
