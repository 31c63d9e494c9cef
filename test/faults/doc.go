// SPDX-License-Identifier: Apache-2.0

// Package faults runs the operator's binary as processes of their own, each behind a
// proxy that sees every request to the API server, and breaks things: each write of
// each scenario in every way, what the operator sees, and leaders. It needs no node: it
// plays some, with the database servers on them. docs/reliability.md says what is
// tried. It finds all by these variables, which make test-faults sets:
//
//	FAULTS_KUBECONFIG  the administrator's kubeconfig of a cluster that may be written to
//	FAULTS_AUDIT_LOG   the API server's audit log, a JSON object a line
//	FAULTS_OPERATOR    the operator's binary, built with the tag "played"
//	FAULTS_RESTART     a command that kills the control plane, keeps it away for 3 s,
//	                   and returns when it is back on the same data and port
//	FAULTS_TABLE       a file that the table of what was tried is written to
//
// and these choose what is tried:
//
//	FAULTS_FULL        set for all scenarios of each engine, and not one; make faults
//	                   sets it
//	FAULTS_ENGINES     names of engines, all by default
//	FAULTS_SHARE       of so many plans one is played (1)
//	FAULTS_PAIRS       how many pairs of changes of a spec are tried (12)
//	FAULTS_DISTURBANCES
//	                   how often each disturbance happens to leaders (1)
//	FAULTS_SEED        chooses among all of those (1)
package faults
