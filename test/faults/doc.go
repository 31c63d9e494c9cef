// SPDX-License-Identifier: Apache-2.0

// Package faults runs the operator's binary as processes of their own, each
// behind a proxy that sees every request to the API server, and breaks things:
// it kills an operator before or after each of its writes, and kills, stops and
// continues leaders. It needs no node. FAULTS_KUBECONFIG names the kubeconfig of
// a cluster that may be written to, FAULTS_OPERATOR the operator's binary, and
// FAULTS_AUDIT_LOG the API server's audit log; make test-faults sets them.
package faults
