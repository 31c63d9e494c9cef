// SPDX-License-Identifier: Apache-2.0

// Package apiclient connects the node's own programs to the API server.
package apiclient

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const pollInterval = 100 * time.Millisecond

// Connect returns a client once the API server is ready. An informer that finds no server waits longer each time, and
// pods wait for what these programs do first.
func Connect(ctx context.Context, kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the server has fairness
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the API server: %w", err)
	}
	return client, nil
}
