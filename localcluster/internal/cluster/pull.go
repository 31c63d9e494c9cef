// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"os"

	"coolops.cn/database-manager/localcluster/internal/network"
	"coolops.cn/database-manager/localcluster/internal/registry"
)

// serveImages lets the nodes pull images from the cache until ctx is done. The bridge's address is in the cluster's
// own network namespace: nobody else reaches it.
func serveImages(ctx context.Context, archives map[string]string) error {
	served, err := registry.New(archives)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", network.RegistryAddress())
	if err != nil {
		return fmt.Errorf("listen for image pulls: %w", err)
	}
	go func() {
		if err := served.Serve(ctx, listener); err != nil {
			fmt.Fprintln(os.Stderr, err) // what was pulled before goes on
		}
	}()
	return nil
}
