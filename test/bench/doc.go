// SPDX-License-Identifier: Apache-2.0

// Package bench measures the operator on a real API server, with played nodes and
// database servers: requests, bytes, CPU and memory of a process of its own, against
// the number of databases, and beside a twin that does as the articles' controller
// does. docs/performance.md says what is measured, how, and what came out. It finds
// all by these variables, which make bench sets:
//
//	BENCH_KUBECONFIG    the administrator's kubeconfig of a cluster that may be written
//	                    to, and has config/crds.yaml, config/manager/namespace.yaml and
//	                    config/rbac
//	BENCH_AUDIT_LOG     the API server's audit log, a JSON object a line
//	BENCH_OPERATOR      the operator's binary, built with the tag "played"
//	BENCH_TWIN          the twin's binary, of test/bench/twin; the guard needs none
//	BENCH_OUT           folder that the raw results are written to, a JSON object a
//	                    line, a file for each benchmark; the guard needs none
//	BENCH_NODES         who plays the nodes: "kwok", or "played" if the cluster has none,
//	                    so that this process plays them, too (played)
//	BENCH_ETCD_METRICS  a command that prints etcd's metrics; without it writes to
//	                    etcd aren't counted
//	BENCH_COMMIT        what is measured, for the results
//
// and these choose how much is measured, with what make bench takes:
//
//	BENCH_ENGINES        names of engines, all by default
//	BENCH_ROUNDS         how often that is repeated which is compared; from 6 on there
//	                     are intervals of 95 % confidence (6)
//	BENCH_REST           how long nothing is asked for, a Go duration (2m)
//	BENCH_LIVES          how many databases of each kind are led through a life (20)
//	BENCH_FOOS           how many Foos our controller and the twin get (200)
//	BENCH_SIZES          numbers of databases to measure with, rising
//	                     (100,1000,5000,10000)
//	BENCH_RESTARTS       numbers of databases, among those, to restart with (1000,5000)
//	BENCH_FOREIGN        how many Secrets, ConfigMaps and pods of others there are
//	                     (50000)
//	BENCH_CHANGES        how many databases are changed at once (1000)
//	BENCH_BROKEN         how many broken resources there are (1000)
package bench
