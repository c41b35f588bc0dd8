# manykube: two commands do everything on a fresh machine, `make up` and `make test`.
SHELL := /bin/bash
# A golden file that is missing or differs fails; `INSTA_UPDATE=always make unit system` writes them anew.
export INSTA_UPDATE ?= no
.DEFAULT_GOAL := help

MANYKUBE := target/release/manykube
HOST     := $(shell rustc -vV | sed -n 's/^host: //p')
# What tests kill commands with. One build for all tests, in the same place; `make build` has none of it.
HOOKS    := --features manykube/test-hooks
FEATURES :=
# What the node image is built with, besides Go and Cargo.
PACKAGES := mmdebstrap gcc libc6-dev libseccomp-dev pkg-config
# What the system tests look at the host with: their own eyes, not the product's.
PACKAGES += nftables iproute2 util-linux openssl conntrack
# What is seen of clusters that are containers of a Docker engine as well.
ON_DOCKER := single_node many_nodes faults
# Walks of many minutes, which `make test` leaves to `make test-long`.
LONG := churn docker_reach docker:own_configuration docker:images docker:crash

.PHONY: help deps build image up down test test-long lint-unit older unit system docs lint advisories bench failover churn vip endurance chaos test-crash vm clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

deps: ## Install the Debian packages the build needs (as root), or say which are missing
	@missing=$$(for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done | tr '\n' ' '); \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ]; then \
		echo "installing $$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	else echo "missing packages: $$missing(run as root: apt-get install $$missing)" >&2; exit 1; fi

build: ## Build the command: target/release/manykube
	cargo build --release --locked -p manykube $(FEATURES)
	@mkdir -p target/release && ln -f target/$(HOST)/release/manykube $(MANYKUBE)
	@[ -n "$(FEATURES)" ] || ! grep -qE 'MANYKUBE_CRASH_|MANYKUBE_CLOCK_|MINIKUBE_TEST_' $(MANYKUBE) || \
		{ echo "$(MANYKUBE) has variables of the tests in it" >&2; exit 1; }

image: deps build ## Build the node image, or find it in the cache
	$(MANYKUBE) node-image build

up: image ## Start a cluster of three control planes that kubectl can use
	$(MANYKUBE) start --ha
	$(MANYKUBE) kubectl -- get nodes -o wide

down: build ## Remove that cluster
	$(MANYKUBE) delete

test: ## Run all tests: lints, unit tests, system tests on real clusters
	@# The node image is Go's work, the rest Rust's, and either has times when it uses one core only.
	$(MAKE) --no-print-directory -j2 FEATURES="$(HOOKS)" older lint-unit
	$(MAKE) --no-print-directory system

lint-unit: build
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory unit

unit: ## Run the tests that need no cluster
	@# There are no examples in comments to be run, and looking for them takes a while.
	cargo test --release --locked --workspace --exclude system-tests --lib --bins --tests $(HOOKS)

# What some tests' workers run.
older: image
	$(MANYKUBE) node-image build --kubelet --kubernetes-version 1.36

system test-crash: FEATURES = $(HOOKS)

system: older ## Run the tests on real clusters (root)
	@# The real client, for docker-env, and the engine, which the tests of the docker driver start themselves.
	@# A registry, podman and sshd, which they start too.
	@for program in docker dockerd docker-registry podman sshd ssh; do command -v $$program >/dev/null || missing=1; done; \
	[ -z "$$missing" ] || { packages="docker.io docker-registry podman openssh-server openssh-client"; \
		echo "installing $$packages"; apt-get update -qq && \
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$packages >/dev/null; }
	ON_DOCKER="$(ON_DOCKER)" LONG="$(LONG)" tests/lanes $(TESTS)

test-long: ## Run the tests on real clusters that take long: engines elsewhere, and more with Docker (root)
	$(MAKE) --no-print-directory system TESTS="$(LONG)"

docs: build ## Write docs/cli.md anew from the command line's definition
	$(MANYKUBE) generate-docs --path docs

lint: ## Check formatting, lints and, where it is installed, licences
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets $(HOOKS) -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check bans licenses sources; \
	else echo "cargo-deny is not installed: licences are not checked (cargo install cargo-deny)"; fi

advisories: ## Ask whether anything that we link is known to be broken (needs a network, cargo-deny)
	cargo deny check advisories

bench: image ## Measure one node, then three control planes beside plain kubeadm (BENCH_HA=--driver=docker: with docker as well), thirty workers, images on five nodes
	cargo build --release --locked --workspace
	@ln -f target/$(HOST)/release/{bench-tool,runc-less} target/release/
	bench/boot
	bench/ha $(BENCH_HA)
	bench/images

failover: image ## Measure what clients notice when the holder of the virtual address is killed, frozen, cut off (20 times each)
	FAILOVER_ROUNDS=$${FAILOVER_ROUNDS:-20} cargo test --release --locked --workspace --test failover -- --nocapture

churn: image ## Let a hundred pods come and go, with every core busy ten times over for ten minutes: the virtual address stays
	CHURN_SECONDS=$${CHURN_SECONDS:-600} cargo test --release --locked --workspace --test churn -- --nocapture

vip: ## Measure the virtual address alone: three agents, then five, and doubles of API servers in namespaces (root)
	VIP_ROUNDS=$${VIP_ROUNDS:-3} cargo test --release --locked --workspace --test vip -- --nocapture

endurance: image ## Stop and start a cluster of five nodes, and cut its power, 5 times each; grow and shrink another
	RESTART_ROUNDS=$${RESTART_ROUNDS:-5} cargo test --release --locked --workspace --test restarts --test growth -- --test-threads=1 --nocapture

chaos: image ## Break nodes at random for ten minutes (CHAOS_MINUTES, CHAOS_SEED) while clients write; nothing may be lost
	cargo build --release --locked --workspace
	@ln -f target/$(HOST)/release/bench-tool target/release/bench-tool
	bench/chaos

test-crash: image ## Kill every command at every place that it passes, run it again and look at the cluster (an hour or more)
	CRASH=all cargo test --release --locked --workspace $(HOOKS) --test crash -- --test-threads=1 --nocapture

vm: image ## Walk nodes through their life on Debian's kernel with cgroup v2, in virtual machines (root, qemu-system-x86; WALK=native, docker, rootless: only this one)
	tests/vm/run $(WALK)

clean: ## Remove what cargo built (the node images in the home's cache stay)
	cargo clean
