# SPDX-License-Identifier: Apache-2.0
#
# make help lists the targets. None needs a set-up step of its own: what is missing is built, or installed by apt.

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

# The cluster that up makes and down removes.
NAME ?= dev
# The operator's image, as config/manager names it.
IMAGE := coolops.cn/database-manager:v0.1.0

# The one example that examples runs, such as 03; all by default.
STEP ?=

# The engine that chaos happens to, how often, and the seed of a run to repeat.
ENGINE ?= redis
FAULTS ?= 20
SEED ?=

# Of so many plans faults plays one; all by default.
SHARE ?=

export NAME IMAGE STEP ENGINE FAULTS SEED SHARE

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: ## from nothing to a Kubernetes with the operator and a database that has answered a query
	@hack/up.sh

.PHONY: down
down: ## remove the cluster that up made, with all that it made on this machine
	@hack/down.sh

.PHONY: test
test: ## everything that CI checks: verify, lint, unit, real engines, API server, real node
	@hack/test.sh

.PHONY: test-unit
test-unit: ## tests that need nothing but Go
	@hack/test.sh unit

.PHONY: simulate
simulate: ## play failovers, handovers and faults by the million, with the real decisions (STATES=1000000)
	@hack/test.sh simulate

.PHONY: test-engines
test-engines: ## tests against the real database servers, of every version, as plain processes
	@hack/test.sh engines-full

.PHONY: test-integration
test-integration: ## tests against a real API server, without nodes
	@hack/test.sh integration

.PHONY: test-faults
test-faults: ## operators that are killed around each write, lose their lease, and rest, on a real API server
	@hack/test.sh faults

.PHONY: faults-quick
faults-quick: ## the same on all scenarios of each engine, with one of many plans (15 minutes; SEED=…)
	@hack/test.sh faults-quick

.PHONY: faults
faults: ## every write of every scenario broken in every way (hours; SHARE=4 for one of four plans, SEED=…)
	@hack/test.sh faults-full

.PHONY: bench
bench: ## what the operator costs, against the number of databases and beside a twin (hours); the table at the end
	@hack/test.sh bench

.PHONY: bench-quick
bench-quick: ## the same with small numbers (10 minutes)
	@hack/test.sh bench-quick

.PHONY: bench-docs
bench-docs: ## write what the last bench measured into docs/performance.md (BENCH_OUT=bin/bench)
	@out=$$(realpath "$${BENCH_OUT:-bin/bench}"); cd test/bench/report && go run . "$${out}" ../../../docs/performance.md ../../../docs/performance

.PHONY: mutants
mutants: ## put bugs back into the product, one at a time: the tests have to find each (needs root; an hour)
	@hack/test.sh mutants

.PHONY: examples
examples: build ## the articles' way: every example as its README shows it, then tested (STEP=03 for one)
	@SHOW=1 hack/test.sh examples

.PHONY: test-readme
test-readme: ## what README.md and examples/README.md have one do, played (needs root)
	@hack/test.sh readme

.PHONY: test-e2e
test-e2e: ## tests with real databases on a real node (needs root)
	@hack/test.sh e2e

.PHONY: e2e-full
e2e-full: ## the same, each engine through its whole life, with figures (needs root; an hour)
	@hack/test.sh e2e-full

.PHONY: chaos
chaos: ## faults at random to three members that are written to (needs root; ENGINE=mysql FAULTS=50 SEED=…)
	@hack/test.sh chaos

.PHONY: lint
lint: ## go vet, golangci-lint and shellcheck
	@hack/test.sh lint

.PHONY: generate
generate: ## make clients, CRDs and install files anew from the types
	@hack/update.sh

.PHONY: verify
verify: ## fail when something that is generated is stale
	@hack/test.sh verify

.PHONY: build
build: ## build the operator and localcluster into bin
	@hack/build.sh

.PHONY: image
image: ## build the operator's image, as an archive, into bin
	@hack/build.sh image
