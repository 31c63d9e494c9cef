// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// serviceCIDR is the range of Service addresses; pki puts its first address into the API server's certificate.
const serviceCIDR = "10.96.0.0/16"

func (c *Config) apiServerArgs(etcdURL string) []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + c.BindAddress,
		fmt.Sprintf("--secure-port=%d", c.Port),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("sa.key"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		"--profiling=false",
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy-client.key"),
		"--shutdown-delay-duration=0s",
	}
	if ip := net.ParseIP(c.BindAddress); ip != nil && ip.IsLoopback() {
		// An endpoint of the `kubernetes` Service must not be a loopback address: without nodes there is none.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if c.EvictAfter != 0 {
		seconds := int64(c.EvictAfter / time.Second)
		args = append(args, fmt.Sprintf("--default-not-ready-toleration-seconds=%d", seconds), fmt.Sprintf("--default-unreachable-toleration-seconds=%d", seconds))
	}
	if c.AuditLog != "" {
		args = append(args, "--audit-log-path="+c.AuditLog, "--audit-policy-file="+c.auditPolicy())
	}
	return args
}

// auditPolicy is the path of the policy file, which stands beside the log.
func (c *Config) auditPolicy() string { return c.AuditLog + ".policy" }

// everyRequest notes who asked for what and how it ended, without contents: those
// of Secrets don't belong in a log.
const everyRequest = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

func (c *Config) writeAuditPolicy() error {
	if c.AuditLog == "" {
		return nil
	}
	return os.WriteFile(c.auditPolicy(), []byte(everyRequest), 0o600)
}

func (c *Config) runAPIServer(ctx context.Context, etcdURL string) error {
	if err := c.writeAuditPolicy(); err != nil {
		return err
	}
	server := options.NewServerRunOptions()
	if err := parseFlags("kube-apiserver", server.Flags(), c.apiServerArgs(etcdURL)); err != nil {
		return err
	}
	if c.ListenFD != 0 {
		listener, err := net.FileListener(os.NewFile(uintptr(c.ListenFD), "listener"))
		if err != nil {
			return fmt.Errorf("use inherited socket %d: %w", c.ListenFD, err)
		}
		server.SecureServing.Listener = listener
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := server.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return apiserver.Run(ctx, completed)
}
