// SPDX-License-Identifier: Apache-2.0

// Command database-manager is the operator: it keeps databases as the
// DatabaseManagers of its cluster ask for.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"coolops.cn/database-manager/internal/app"
)

// licenses are the texts that every copy of this program has to carry.
//
//go:embed licenses.txt
var licenses string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 after a clean stop, 1 after a failure, 2 if the
// command line can't be understood.
func run(ctx context.Context, arguments []string) int {
	flags, err := parseFlags(arguments)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Print(flags.usage)
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s\nSee database-manager --help.\n", err)
		return 2
	case flags.version:
		fmt.Println(version())
		return 0
	case flags.licenses:
		fmt.Print(licenses)
		return 0
	}
	logger := flags.logger(os.Stderr)
	setKlog(logger, flags.verbosity)
	logger.Info("Starting", "version", version())
	if err := start(klog.NewContext(ctx, logger), flags); err != nil {
		logger.Error(err, "The operator failed")
		return 1
	}
	return 0
}

// setKlog gives client-go the logger. What it logs without a context is held to
// the level of detail by klog itself.
func setKlog(logger logr.Logger, verbosity int) {
	var set flag.FlagSet
	klog.InitFlags(&set)
	if err := set.Set("v", strconv.Itoa(verbosity)); err != nil {
		// The level is a number, and klog has the flag.
		panic(err)
	}
	klog.SetLogger(logger)
}

func start(ctx context.Context, flags flags) error {
	cluster, err := flags.cluster()
	if err != nil {
		return err
	}
	lease, err := flags.lease()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return app.Run(ctx, app.Options{
		Cluster:        cluster,
		Namespaces:     flags.namespaces,
		OwnNamespace:   podNamespace(),
		Controllers:    flags.controllers,
		Workers:        flags.workers,
		MetricsAddress: flags.metricsAddress,
		HealthAddress:  flags.healthAddress,
		PprofAddress:   flags.pprofAddress,
		LeaseNamespace: lease,
		Defaults:       flags.defaults.read,
		Identity:       host + "_" + string(uuid.NewUUID()),
	})
}
