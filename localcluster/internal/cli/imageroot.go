// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (s *settings) imageRoot() *cobra.Command {
	return &cobra.Command{
		Use: "image-root IMAGE", Short: "Unpack an image's packages, and print the folder: its programs run without a container", Args: cobra.ExactArgs(1),
		Example: "  localcluster image-root redis:8.0",
		RunE: func(command *cobra.Command, args []string) error {
			options, err := s.options(false)
			if err != nil {
				return err
			}
			root, err := options.Maker.Root(command.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), root.Path)
			return err
		},
	}
}
