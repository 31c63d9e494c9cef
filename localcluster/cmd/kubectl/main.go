// SPDX-License-Identifier: Apache-2.0

// kubectl is the upstream command, built from its module so that nothing has to be installed.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		// As upstream: the error is printed in kubectl's own form, with its exit code.
		util.CheckErr(err)
	}
}
