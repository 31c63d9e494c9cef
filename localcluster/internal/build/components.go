// SPDX-License-Identifier: Apache-2.0

package build

// KubernetesVersion is the version of everything that is built from k8s.io/kubernetes; go.mod must name the same.
const KubernetesVersion = "v1.37.2"

// Component is a program that is built from Go modules.
type Component struct {
	// Name is the binary's name.
	Name string
	// Package is its import path, or its folder relative to the module.
	Package string
	// Module is the folder of the module that it is built in, relative to the source folder.
	Module string
	// Sources are the folders of this repository's own packages that it is built from, relative to Module.
	Sources []string
}

// The components of a cluster. A test compares Sources with what the Go tool says.
var (
	ControlPlane = Component{Name: "control-plane", Package: "./cmd/control-plane", Module: ".", Sources: []string{"cmd/control-plane", "internal/controlplane", "internal/kwok", "internal/process", "internal/unixsocket", "internal/volumes"}}
	Kubelet      = Component{Name: "kubelet", Package: "k8s.io/kubernetes/cmd/kubelet", Module: "."}
	KubeProxy    = Component{Name: "kube-proxy", Package: "k8s.io/kubernetes/cmd/kube-proxy", Module: "."}
	Kubectl      = Component{Name: "kubectl", Package: "./cmd/kubectl", Module: ".", Sources: []string{"cmd/kubectl"}}
	Pause        = Component{Name: "pause", Package: "./cmd/pause", Module: ".", Sources: []string{"cmd/pause"}}
	CoreDNS      = Component{Name: "coredns", Package: ".", Module: "coredns", Sources: []string{"."}}
	Kwok         = Component{Name: "kwok", Package: ".", Module: "kwok", Sources: []string{"."}}
)

// ForControlPlane are the components of a cluster without nodes.
func ForControlPlane() []Component { return []Component{ControlPlane, Kubectl} }

// ForNodes are the components of a cluster with nodes.
func ForNodes() []Component {
	return []Component{ControlPlane, Kubelet, KubeProxy, Kubectl, Pause, CoreDNS}
}

// ForFake are the components that a cluster with fake nodes has besides.
func ForFake() []Component { return []Component{Kwok} }
