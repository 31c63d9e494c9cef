// SPDX-License-Identifier: Apache-2.0

// kwok plays the kubelets of the nodes that are annotated kwok.x-k8s.io/node=fake: it is upstream's controller with its
// own fast stages, and with addresses that stay unique. It runs nothing, and listens on nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
)

const (
	// identity holds the leases. It is the same after a restart, so that nobody waits for them to expire.
	identity = "localcluster-kwok"
	// managedNodes are those that are played.
	managedNodes = "kwok.x-k8s.io/node=fake"
	// nodeWorkers and podWorkers are how many changes are written at a time.
	nodeWorkers, podWorkers = 4, 16
	protobuf                = "application/vnd.kubernetes.protobuf"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the API server")
	leaseSeconds := flag.Uint("lease-seconds", 0, "duration of the nodes' leases, which are renewed four times within it (0: no leases)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn))
	err := run(ctx, *kubeconfig, *leaseSeconds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

// run plays until ctx ends.
func run(ctx context.Context, kubeconfig string, leaseSeconds uint) error {
	stages, err := fastStages()
	if err != nil {
		return err
	}
	client, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	pods := newPodAddresses(client)
	if err := pods.awaitUsed(ctx); err != nil {
		return err
	}
	controller, err := controllers.NewController(controllers.Config{
		Clock: clock.RealClock{}, TypedClient: client, ID: identity,
		ManageNodesWithAnnotationSelector: managedNodes, LocalStages: stages, FuncMap: pods.functions(), CIDR: podRange.String(),
		NodePlayStageParallelism: nodeWorkers, PodPlayStageParallelism: podWorkers,
		NodeLeaseParallelism: nodeWorkers, NodeLeaseDurationSeconds: leaseSeconds,
		PodsOnNodeSyncParallelism: 1, EnablePodsOnNodeSyncListPager: true,
	})
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the server has fairness
	config.UserAgent = "kwok"
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+",application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return carefulClient{client}, nil
}
