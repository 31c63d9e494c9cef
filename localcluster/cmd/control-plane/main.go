// SPDX-License-Identifier: Apache-2.0

// control-plane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process,
// and, when asked, the provisioner of local volumes. `localcluster up` starts it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"

	"coolops.cn/database-manager/localcluster/internal/controlplane"
)

func main() {
	var config controlplane.Config
	flags := pflag.NewFlagSet("control-plane", pflag.ExitOnError)
	config.AddFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		fail(err)
	}
	if err := config.Validate(); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := controlplane.Run(ctx, config); err != nil {
		logs.FlushLogs()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "control-plane:", err)
	os.Exit(1)
}
