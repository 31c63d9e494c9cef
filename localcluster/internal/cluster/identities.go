// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"

	"coolops.cn/database-manager/localcluster/internal/addons"
	"coolops.cn/database-manager/localcluster/internal/network"
	"coolops.cn/database-manager/localcluster/internal/pki"
)

const (
	adminIdentity         = "admin"
	kubeProxyIdentity     = "kube-proxy"
	networkPolicyIdentity = "network-policy"
	sizedVolumeIdentity   = "sized-volume"
)

func kubeletIdentity(node string) string { return "kubelet-" + node }

// writePKI writes certificates and kubeconfigs for every client of the API server.
func (c *Cluster) writePKI(config Config) error {
	host := fmt.Sprintf("https://127.0.0.1:%d", config.Port)
	inside := host
	if len(config.Nodes) > 0 {
		inside = fmt.Sprintf("https://%s:%d", network.ControlPlaneIP(), controlPlanePort)
	}
	identities := []pki.Identity{
		{Name: adminIdentity, User: "admin", Groups: []string{"system:masters"}, Server: host},
		{Name: "kube-controller-manager", User: "system:kube-controller-manager", Server: inside},
		{Name: "kube-scheduler", User: "system:kube-scheduler", Server: inside},
		{Name: "volume-provisioner", User: "localcluster:volume-provisioner", Groups: []string{"system:masters"}, Server: inside},
		{Name: kubeProxyIdentity, User: "system:kube-proxy", Server: inside},
		// No role of Kubernetes' own fits these two, and one of ours would come after the node that waits for it.
		{Name: networkPolicyIdentity, User: "localcluster:network-policy", Groups: []string{"system:masters"}, Server: inside},
		{Name: sizedVolumeIdentity, User: "localcluster:sized-volume", Groups: []string{"system:masters"}, Server: inside},
	}
	if config.Fake > 0 {
		identities = append(identities, pki.Identity{Name: kwokIdentity, User: addons.KwokUser, Server: inside})
	}
	for _, node := range config.Nodes {
		identities = append(identities, pki.Identity{
			Name: kubeletIdentity(node), User: "system:node:" + node, Groups: []string{"system:nodes"}, Server: inside,
		})
	}
	// 10.96.0.1 is the `kubernetes` Service, by which pods reach the API server.
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1), network.ControlPlaneIP()}
	return pki.Ensure(c.path("pki"), ips, identities)
}
