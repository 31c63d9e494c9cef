// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator with real databases on a real node. It needs a
// cluster in which config/install.yaml is applied, and that has the images of
// the engines; E2E_KUBECONFIG names its kubeconfig. make test-e2e makes one.
package e2e
