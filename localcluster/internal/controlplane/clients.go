// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"coolops.cn/database-manager/localcluster/internal/volumes"
)

func (c *Config) runControllerManager(ctx context.Context) error {
	opts, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, disabled, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	flags := opts.Flags(known, disabled, aliases)
	opts.ParsedFlags = &flags
	if err := parseFlags("kube-controller-manager", flags, c.controllerManagerArgs()); err != nil {
		return err
	}
	config, err := opts.Config(ctx, known, disabled, aliases)
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, config.Complete())
}

// lookAtNodes is how often in the time after which a node is lost its silence is looked at.
const lookAtNodes = 10

// never is longer than any cluster lives.
const never = 10 * 365 * 24 * time.Hour

func (c *Config) controllerManagerArgs() []string {
	args := []string{
		"--kubeconfig=" + c.pki("kube-controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"),
		"--cluster-signing-key-file=" + c.pki("ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20", "--concurrent-statefulset-syncs=20",
	}
	switch {
	case c.NodeLostAfter != 0:
		args = append(args, "--node-monitor-grace-period="+c.NodeLostAfter.String(), "--node-monitor-period="+(c.NodeLostAfter/lookAtNodes).String())
	case c.Kwok != "":
		// Fake nodes alone say once that they are ready.
		args = append(args, "--node-monitor-grace-period="+never.String())
	}
	return args
}

func (c *Config) runScheduler(ctx context.Context) error {
	opts := scheduleroptions.NewOptions()
	err := parseFlags("kube-scheduler", *opts.Flags, []string{
		"--kubeconfig=" + c.pki("kube-scheduler.kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400",
	})
	if err != nil {
		return err
	}
	config, sched, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, config, sched)
}

func (c *Config) runVolumeProvisioner(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.pki("volume-provisioner.kubeconfig"))
	if err != nil {
		return fmt.Errorf("volume provisioner: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("volume provisioner: %w", err)
	}
	volumes.Run(ctx, client, c.VolumesDir)
	return nil
}
