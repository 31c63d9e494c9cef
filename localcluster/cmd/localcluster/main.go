// SPDX-License-Identifier: Apache-2.0

// localcluster runs Kubernetes on a bare Linux machine, without a registry and without touching the host's network.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"coolops.cn/database-manager/localcluster/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks every step to end; the second ends the process.
	context.AfterFunc(ctx, stop)
	if err := cli.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}
