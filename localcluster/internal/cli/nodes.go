// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"coolops.cn/database-manager/localcluster/internal/cluster"
	"coolops.cn/database-manager/localcluster/internal/progress"
)

// node groups what is done to a single node.
func (s *settings) node() *cobra.Command {
	command := &cobra.Command{Use: "node", Short: "Take a node away as a loss of power would, or bring it back", Args: cobra.NoArgs}
	command.AddCommand(
		s.changeNode("stop", "End a node with all that runs on it, at once; Kubernetes isn't told, and the volumes stay", (*cluster.Cluster).StopNode),
		s.changeNode("start", "Start a node that was stopped, and wait until it is ready", (*cluster.Cluster).StartNode),
	)
	return command
}

func (s *settings) changeNode(verb, short string, change func(*cluster.Cluster, context.Context, string, *progress.Printer) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NODE", Short: short, Args: cobra.ExactArgs(1),
		Example: "  localcluster node " + verb + " node-2",
		RunE: func(command *cobra.Command, args []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return change(c, command.Context(), args[0], progress.NewPrinter(os.Stderr))
		},
	}
}

func (s *settings) isolate() *cobra.Command {
	return s.changePod("isolate", "Drop all that a pod sends and is sent, as a broken wire would, until `rejoin` or its end",
		"drop only what comes from these IPv4 addresses and goes to them, besides those given before", (*cluster.Cluster).Isolate)
}

func (s *settings) rejoin() *cobra.Command {
	return s.changePod("rejoin", "Undo what `isolate` did to a pod",
		"only for these IPv4 addresses", (*cluster.Cluster).Rejoin)
}

func (s *settings) changePod(verb, short, usage string, change func(*cluster.Cluster, context.Context, string, []string) error) *cobra.Command {
	var from []string
	command := &cobra.Command{
		Use: verb + " NAMESPACE/POD", Short: short, Args: cobra.ExactArgs(1),
		Example: "  localcluster " + verb + " default/orders-db-0\n  localcluster " + verb + " default/orders-db-0 --from 10.244.0.7,10.244.1.5",
		RunE: func(command *cobra.Command, args []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return change(c, command.Context(), args[0], from)
		},
	}
	command.Flags().StringSliceVar(&from, "from", nil, usage)
	return command
}
