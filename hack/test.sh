#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/test.sh [STEP…]
#
# Runs the steps that are named, or all, in this order:
#
#   build        builds the programs, Kubernetes among them, and the images
#   verify       nothing that is generated, nor any go.sum, is stale
#   lint         go vet, golangci-lint, shellcheck
#   unit         tests that need nothing but Go, with the race detector
#   simulate     the decisions about roles, played against a model of servers, networks and volumes
#   engines      tests against the real database servers, as plain processes
#   integration  tests against a real API server
#   faults       operators that die, stop and lose their lease, on a real API server; and how many requests
#                and bytes things take, compared with what they were designed to take
#   examples     the examples' READMEs, played, and their tests, on a real API server
#   localcluster the local cluster's own tests (needs root)
#   e2e          real databases on a real node (needs root), with some faults at random
#   readme       what README.md and examples/README.md have one do, played (needs root)
#
# These run only where they are named:
#
#   engines-full as engines, with every version and every password that is tried
#   faults-quick as faults, with all scenarios of each engine and one of many plans (15 minutes)
#   faults-full  as faults, with all plans (hours), or one of SHARE; SEED repeats another run's choice
#   mutants      bugs put back into the product, which the tests have to find (an hour, needs root);
#                MUTANTS_LEVELS="unit simulate" leaves out what needs real servers
#   bench        what the operator costs, against the number of databases and beside a twin (hours); ends with a
#                table, and keeps the raw results in BENCH_OUT (bin/bench); test/bench/doc.go has more variables
#   bench-quick  the same with small numbers (10 minutes)
#   e2e-full     as e2e, with each engine led through its whole life (an hour)
#   chaos        FAULTS faults at random (20), and a quarter of that of planned changes, to
#                three members of ENGINE (redis), while a
#                client writes; SEED repeats those of another run (needs root)
#
# STEP=03 has examples play and test the third one alone, and SHOW=1 show what
# is typed and printed.
#
# It uses clusters of its own, which it removes, and so runs beside a make up.
# Tests find what they need by these variables:
#
#   TEST_KUBECONFIG              administrator's kubeconfig of the integration tests' cluster
#   FAULTS_KUBECONFIG            the same for the fault tests
#   FAULTS_AUDIT_LOG             that cluster's audit log, a JSON object a line
#   FAULTS_OPERATOR              the operator's binary, built for database servers that the tests play
#   FAULTS_RESTART               command that kills that cluster's control plane, keeps it away for 3 s, and returns
#                                when it is back on the same data and port
#   FAULTS_TABLE                 file that the table of what was tried is written to
#   FAULTS_FULL, FAULTS_SHARE, FAULTS_PAIRS, FAULTS_DISTURBANCES, FAULTS_SEED
#                                how much of it is tried: see test/faults/doc.go
#   BENCH_KUBECONFIG, BENCH_AUDIT_LOG, BENCH_OPERATOR, BENCH_TWIN, BENCH_OUT
#                                the same for the benchmarks, and more: see test/bench/doc.go
#   E2E_KUBECONFIG               administrator's kubeconfig of the cluster with a node
#   E2E_AUDIT_LOG                that cluster's audit log, a JSON object a line
#   E2E_FIGURES                  file that the tests add what they measured to
#   E2E_LOCALCLUSTER             command that cuts that cluster's pods off, and stops its nodes
#   E2E_NEXT_IMAGE               image of the operator's next build, with another pod template
#   E2E_FULL                     set for e2e-full
#   EXAMPLES_KUBECONFIG          administrator's kubeconfig of the examples' cluster
#   EXAMPLES_AUDIT_LOG           that cluster's audit log, a JSON object a line
#   EXAMPLES_RESTART             command that kills the API server of another cluster, keeps it away for 3 s, and
#                                returns when it is back on the same data and port
#   EXAMPLES_RESTART_KUBECONFIG  administrator's kubeconfig of that one; no two packages are tested at a time
#   EXAMPLES_BIN                 folder with database-manager and localcluster
#   LOCALCLUSTER                 the localcluster command that its own tests run
#   LOCALCLUSTER_SOURCE          folder of its module
#
# It prints how long each step took, and ends with a summary of all tests.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly all=(build verify lint unit simulate engines integration faults examples localcluster e2e readme)
readonly others=(engines-full faults-quick faults-full mutants bench bench-quick e2e-full chaos)
readonly id=$$
results=$(mktemp -d)
clusters=()
times=()

finish() {
	local code=$?
	for cluster in "${clusters[@]}"; do
		bin/localcluster --name "${cluster}" down || code=1
	done
	rm -rf "${results}"
	exit "${code}"
}
trap finish EXIT
trap 'exit 130' INT TERM

# test NAME ARGUMENTS… runs go test through gotestsum and keeps the results. The
# limit of time is there for what hangs: a machine that others use, too, takes
# several times as long as one that is idle.
run_tests() {
	local name=$1
	shift
	go tool -modfile=hack/tools/go.mod gotestsum --format="${format:-pkgname}" --format-hide-empty-pkg \
		--hide-summary=skipped --jsonfile="${results}/${name}.json" -- -count=1 -shuffle=on -timeout=40m "$@"
}

# test_module FOLDER NAME ARGUMENTS… does the same in a module of its own, with the
# settings that Kubernetes is compiled with: others would compile all of it again.
test_module() {
	local folder=$1 name=$2 tools=${PWD}/hack/tools/go.mod
	shift 2
	(
		cd "${folder}"
		CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off go tool -modfile="${tools}" gotestsum --format=pkgname --format-hide-empty-pkg \
			--hide-summary=skipped --jsonfile="${results}/${name}.json" -- -count=1 -shuffle=on "$@"
	)
}

# in_localcluster COMMAND… runs in the local cluster's module, with those settings.
in_localcluster() { (cd localcluster && CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off "$@"); }

# in_kwok COMMAND… does the same in the module of what plays fake nodes.
in_kwok() { in_localcluster env --chdir=kwok "$@"; }

# cluster_up NAME ARGUMENTS… makes a cluster. Its programs collect garbage a quarter as
# often as by default: that takes a third less of a processor, and a GiB more of memory.
cluster_up() {
	local name=$1
	shift
	clusters+=("${name}")
	GOGC=400 bin/localcluster --name "${name}" up "$@"
}

# kubeconfig and audit_log NAME print where a cluster has them.
kubeconfig() { bin/localcluster --name "$1" kubeconfig; }
audit_log() { printf '%s/logs/audit.log\n' "$(dirname "$(dirname "$(kubeconfig "$1")")")"; }

step_build() {
	hack/build.sh image
	bin/localcluster build --fake
}

step_verify() {
	hack/verify.sh
	local module
	for module in . localcluster localcluster/coredns localcluster/kwok test/bench/twin test/bench/report; do
		(cd "${module}" && go mod tidy -diff) || {
			echo "go.mod or go.sum of ${module} is stale: run go mod tidy there" >&2
			return 1
		}
	done
}

step_lint() {
	hack/tools.sh shellcheck
	git ls-files '*.sh' .ci/run | xargs shellcheck
	go vet ./...
	go vet -tags=realengine,integration,faults,bench,mutants,e2e,chaos,examples,readme ./...
	go vet -tags=successor ./internal/objects/
	go vet -tags=played ./internal/app/ ./cmd/...
	in_localcluster go vet -tags=e2e ./...
	go build -modfile=hack/tools/lint/go.mod -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...
	bin/golangci-lint run --build-tags=successor ./internal/objects/...
	bin/golangci-lint run --build-tags=played ./internal/app/...
	in_localcluster ../bin/golangci-lint run --config=../.golangci.yml ./...
	in_kwok go vet ./...
	in_kwok ../../bin/golangci-lint run --config=../../.golangci.yml ./...
	local module
	for module in test/bench/twin test/bench/report; do
		(cd "${module}" && go vet ./... && ../../../bin/golangci-lint run --config=../../../.golangci.yml ./...)
	done
}

step_unit() {
	hack/tools.sh gcc
	run_tests unit -race ./...
	# What the next build renders, of which a release has nothing.
	run_tests unit-successor -race -tags=successor ./internal/objects/
	# A few of the bugs that these tests have to find.
	MUTANTS_SHARE=40 MUTANTS_SEED=$((16#$(git rev-parse --short=8 HEAD))) run_tests unit-mutants -tags=mutants ./test/mutants/
	test_module test/bench/report unit-report ./...
	test_module localcluster unit-localcluster ./...
	test_module localcluster/kwok unit-kwok ./...
}

step_simulate() {
	# Without the race detector: it plays in one goroutine an engine.
	STATES=${STATES:-1000000} run_tests simulate -run='^TestNoFaultLosesAnAcknowledgedCommit$' ./internal/plan/
}

run_engines() {
	hack/tools.sh util-linux iproute2
	eval "$(hack/engines.sh)"
	run_tests engines -race -tags=realengine "$@" ./internal/dbclient/... ./internal/engine/...
}

step_engines() { run_engines -short; }
step_engines-full() { run_engines; }

step_integration() {
	cluster_up "test-api-${id}" --control-plane-only
	TEST_KUBECONFIG=$(kubeconfig "test-api-${id}")
	export TEST_KUBECONFIG
	run_tests integration -race -tags=integration ./test/integration/...
}

# faults_up makes what the fault tests need: a control plane without nodes.
faults_up() {
	local name=test-faults-${id}
	cluster_up "${name}" --control-plane-only --audit-log
	bin/localcluster --name "${name}" kubectl -- apply --server-side --filename=config/crds.yaml
	FAULTS_KUBECONFIG=$(kubeconfig "${name}")
	FAULTS_AUDIT_LOG=$(audit_log "${name}")
	export FAULTS_KUBECONFIG FAULTS_AUDIT_LOG
	export FAULTS_RESTART="${PWD}/bin/localcluster --name ${name} restart --kill --down-for 3s"
}

# run_faults NAME ARGUMENTS… breaks writes, and prints what was tried.
run_faults() {
	local which=$1
	shift
	faults_up
	hack/tools.sh gcc # for the race detector
	go build -race -tags=played -o bin/database-manager-played ./cmd/database-manager
	export FAULTS_OPERATOR=${PWD}/bin/database-manager-played FAULTS_TABLE=${results}/${which}.txt
	echo "what is tried: FAULTS_SEED=${FAULTS_SEED} FAULTS_SHARE=${FAULTS_SHARE}; the table so far: ${FAULTS_TABLE}"
	# Most of them wait most of the time.
	run_tests "${which}" -tags=faults -parallel=8 "$@" ./test/faults/... || {
		[[ ! -e ${FAULTS_TABLE} ]] || cat "${FAULTS_TABLE}"
		return 1
	}
	cat "${FAULTS_TABLE}"
}

# The commit chooses one scenario of each engine, and of its plans some.
step_faults() {
	FAULTS_SEED=$((16#$(git rev-parse --short=8 HEAD))) FAULTS_SHARE=24 run_faults faults
	# On the same cluster, and without the race detector, which costs nothing here that is counted.
	prepare_bench "test-faults-${id}"
	run_tests guard -tags=bench -run='^TestGuard$' ./test/bench/
}

# prepare_bench NAME makes ready what benchmarks need, in a cluster that runs: the
# operator's rights, and its program.
prepare_bench() {
	local name=$1
	bin/localcluster --name "${name}" kubectl -- apply --server-side \
		--filename=config/crds.yaml --filename=config/manager/namespace.yaml --filename=config/rbac
	go build -tags=played -o bin/database-manager-bench ./cmd/database-manager
	BENCH_KUBECONFIG=$(kubeconfig "${name}")
	BENCH_AUDIT_LOG=$(audit_log "${name}")
	export BENCH_KUBECONFIG BENCH_AUDIT_LOG BENCH_OPERATOR=${PWD}/bin/database-manager-bench
}

# run_bench NAME measures, and keeps the results in BENCH_OUT.
run_bench() {
	local which=$1 name=bench-${id}
	cluster_up "${name}" --control-plane-only --fake 1 --audit-log
	prepare_bench "${name}"
	export BENCH_NODES=kwok BENCH_ETCD_METRICS="${PWD}/bin/localcluster --name ${name} etcd-metrics"
	(cd test/bench/twin && go build -o ../../../bin/bench-twin .)
	BENCH_COMMIT=$(git describe --always --dirty)
	BENCH_OUT=$(realpath --canonicalize-missing "${BENCH_OUT:-bin/bench}")
	export BENCH_COMMIT BENCH_OUT BENCH_TWIN=${PWD}/bin/bench-twin
	rm -f "${BENCH_OUT}"/*.jsonl
	# In order, and one at a time: each would be measured with the others.
	format=standard-verbose run_tests "${which}" -tags=bench -shuffle=off -v -timeout=24h -skip='^TestGuard$' ./test/bench/
	bin/localcluster --name "${name}" down
}

# run_bench_node measures what takes real servers on a real node.
run_bench_node() {
	local name=bench-node-${id}
	cluster_up "${name}"
	bin/localcluster --name "${name}" load-image bin/database-manager.tar
	bin/localcluster --name "${name}" kubectl -- apply --server-side --filename=config/install.yaml
	bin/localcluster --name "${name}" kubectl -- --namespace=database-manager-system \
		rollout status deployment/database-manager --timeout=2m
	BENCH_NODE_KUBECONFIG=$(kubeconfig "${name}")
	export BENCH_NODE_KUBECONFIG BENCH_IMAGE=${PWD}/bin/database-manager.tar BENCH_INSTALL=${PWD}/config
	format=standard-verbose run_tests bench-node -tags=bench -shuffle=off -v -timeout=6h ./test/bench/node/
}

# print_bench prints the tables of what was measured.
print_bench() { (cd test/bench/report && go run . "${BENCH_OUT}"); }

step_bench() {
	run_bench bench
	run_bench_node
	print_bench
}

step_bench-quick() {
	export BENCH_ENGINES=${BENCH_ENGINES:-postgresql} BENCH_ROUNDS=${BENCH_ROUNDS:-1} BENCH_REST=${BENCH_REST:-30s} BENCH_LIVES=${BENCH_LIVES:-5}
	export BENCH_FOOS=${BENCH_FOOS:-40} BENCH_SIZES=${BENCH_SIZES:-50,200} BENCH_RESTARTS=${BENCH_RESTARTS:-200} BENCH_FOREIGN=${BENCH_FOREIGN:-1000}
	export BENCH_CHANGES=${BENCH_CHANGES:-100} BENCH_BROKEN=${BENCH_BROKEN:-100}
	run_bench bench-quick
	print_bench
}

step_faults-quick() { FAULTS_FULL=yes FAULTS_SEED=${SEED:-1} FAULTS_SHARE=40 run_faults faults-quick; }
step_faults-full() { FAULTS_FULL=yes FAULTS_SEED=${SEED:-1} FAULTS_SHARE=${SHARE:-1} FAULTS_PAIRS=200 FAULTS_DISTURBANCES=4 run_faults faults-full -timeout=24h; }

step_mutants() {
	hack/tools.sh gcc util-linux iproute2
	faults_up
	eval "$(hack/engines.sh)"
	export MUTANTS_LEVELS=${MUTANTS_LEVELS:-unit simulate faults engines} MUTANTS_TABLE=${results}/mutants.txt
	format=testname run_tests mutants -tags=mutants -timeout=6h ./test/mutants/ || {
		[[ ! -e ${MUTANTS_TABLE} ]] || cat "${MUTANTS_TABLE}"
		return 1
	}
	cat "${MUTANTS_TABLE}"
}

step_examples() {
	# The first README shows curl; the race detector needs a C compiler.
	hack/tools.sh curl gcc
	local name=test-examples-${id} restarted=test-restart-${id}
	cluster_up "${name}" --control-plane-only --audit-log
	cluster_up "${restarted}" --control-plane-only --audit-log
	EXAMPLES_KUBECONFIG=$(kubeconfig "${name}")
	EXAMPLES_AUDIT_LOG=$(audit_log "${name}")
	EXAMPLES_RESTART="${PWD}/bin/localcluster --name ${restarted} restart --kill --down-for 3s"
	EXAMPLES_RESTART_KUBECONFIG=$(kubeconfig "${restarted}")
	EXAMPLES_BIN=${PWD}/bin
	export EXAMPLES_KUBECONFIG EXAMPLES_AUDIT_LOG EXAMPLES_RESTART EXAMPLES_RESTART_KUBECONFIG EXAMPLES_BIN
	local variables
	variables=$(bin/localcluster --name "${name}" env)
	# First, since tests may leave a namespace that is on its way out.
	(
		eval "${variables}"
		format=${SHOW:+standard-verbose}
		run_tests examples-readme -tags=readme -timeout=60m -run="^TestExamples\$/${STEP:-}" ./test/readme
	)
	# Not two packages at a time: each restarts the API server under the other.
	local format=${SHOW:+testname}
	run_tests examples -race -tags=examples -p=1 -parallel=8 "./examples/${STEP:-}"*/
}

step_localcluster() {
	LOCALCLUSTER=${PWD}/bin/localcluster LOCALCLUSTER_SOURCE=${PWD}/localcluster \
		test_module localcluster localcluster -tags=e2e -timeout=40m ./e2e/...
}

# run_e2e NAME ARGUMENTS… runs the end-to-end tests on a cluster of their own, and
# compares afterwards what the operator may do with what it did.
run_e2e() {
	local name=test-$1-${id}
	shift
	cluster_up "${name}" --nodes 2 --audit-log
	hack/build.sh next
	bin/localcluster --name "${name}" load-image bin/database-manager.tar bin/database-manager-next.tar
	bin/localcluster --name "${name}" kubectl -- apply --server-side --filename=config/install.yaml
	# As talkative as it can be: the tests look for passwords in what it says.
	bin/localcluster --name "${name}" kubectl -- --namespace=database-manager-system \
		set env deployment/database-manager DATABASE_MANAGER_V=8
	bin/localcluster --name "${name}" kubectl -- --namespace=database-manager-system \
		rollout status deployment/database-manager --timeout=2m
	E2E_KUBECONFIG=$(kubeconfig "${name}")
	E2E_AUDIT_LOG=$(audit_log "${name}")
	export E2E_KUBECONFIG E2E_AUDIT_LOG E2E_FIGURES=${results}/figures
	export E2E_LOCALCLUSTER="${PWD}/bin/localcluster --name ${name}"
	export E2E_NEXT_IMAGE=coolops.cn/database-manager:next
	# Most of them wait most of the time.
	run_tests e2e -tags=e2e -parallel=5 "$@" ./test/e2e/ || {
		[[ ! -e ${E2E_FIGURES} ]] || cat "${E2E_FIGURES}"
		return 1
	}
	[[ ${name} == test-chaos-* ]] || run_tests rights -tags=e2e ./test/e2e/rights/
	sort "${E2E_FIGURES}"
}

# Besides, some faults at random happen to an engine, which the commit chooses.
step_e2e() {
	local engines=(redis valkey postgresql mariadb mysql) seed
	seed=$((16#$(git rev-parse --short=8 HEAD)))
	export CHAOS_ENGINE=${engines[seed % 5]} CHAOS_FAULTS=3 CHAOS_SEED=${seed}
	echo "faults at random: make chaos ENGINE=${CHAOS_ENGINE} FAULTS=${CHAOS_FAULTS} SEED=${CHAOS_SEED}"
	run_e2e e2e -tags=e2e,chaos
}

step_e2e-full() { E2E_FULL=yes run_e2e full -timeout=90m; }

step_chaos() {
	export CHAOS_ENGINE=${ENGINE:-redis} CHAOS_FAULTS=${FAULTS:-20} CHAOS_SEED=${SEED:-}
	format=testname run_e2e chaos -tags=e2e,chaos -timeout=12h -v -run='^TestChaos$'
}

step_readme() {
	run_tests readme -tags=readme -timeout=60m -run='^Test(HowToGetACluster|SeeItWork|InstallIt)$' ./test/readme
}

steps=("$@")
((${#steps[@]})) || steps=("${all[@]}")
for step in "${steps[@]}"; do
	if [[ " ${all[*]} ${others[*]} " != *" ${step} "* ]]; then
		echo "no step ${step}: there are ${all[*]} ${others[*]}" >&2
		exit 2
	fi
done
[[ -x bin/localcluster && -f bin/database-manager.tar ]] || hack/build.sh image

for step in "${steps[@]}"; do
	printf '\n==> %s\n' "${step}"
	start=${SECONDS}
	"step_${step}"
	times+=("$(printf '%-13s %5d s' "${step}" "$((SECONDS - start))")")
done

printf '\n'
printf '%s\n' "${times[@]}" "all           $(printf '%5d' "${SECONDS}") s"
if compgen -G "${results}/*.json" >/dev/null; then
	printf '\n'
	cat "${results}"/*.json >"${results}/all"
	go tool -modfile=hack/tools/go.mod gotestsum --format=none --hide-summary=skipped --raw-command -- cat "${results}/all"
fi
