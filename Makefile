# weir. `make demo` and `make test` do all the set-up a fresh machine needs, or say what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# One profile and one set of features for everything, so that nothing (RocksDB above all) is compiled twice.
FEATURES := --workspace --features weir-broker/test-clock
BUILD := $(FEATURES) --all-targets
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

# Seconds a target is fuzzed.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS := $(basename $(notdir $(wildcard broker/fuzz/targets/*.rs)))
FUZZ_DIR := $(abspath $(TARGET_DIR))/fuzz

.PHONY: help compilers setup build demo test lint unit fuzz prove bench

help: ## What there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

compilers:
	@command -v cargo >/dev/null || { echo "missing: cargo, Rust 1.95 or later (https://rustup.rs)"; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || { echo "missing: a C++ compiler (Debian: g++)"; exit 1; }

setup: compilers ## Check the tools; install libclang where that can be done
	@if [ -z "$${LIBCLANG_PATH:-}" ] && [ -z "$$(find /usr/lib /usr/lib64 /usr/local/lib \( -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' \) -print -quit 2>/dev/null)" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing libclang-dev, which RocksDB's bindings need"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libclang-dev >/dev/null; \
	  else \
	    echo "missing: libclang, which RocksDB's bindings need (Debian: apt-get install libclang-dev)"; exit 1; \
	  fi; \
	fi
	@if ! command -v strace >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing strace, with which tests let the disk fail"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq strace >/dev/null; \
	fi

build: setup ## Build the binaries and examples (RocksDB's C++ takes about 25 CPU-minutes the first time)
	cargo build $(FEATURES) --bins --examples

demo: build ## The refund story: killed workers, a killed broker, and each refund paid once
	$(TARGET_DIR)/debug/examples/refunds

lint: setup ## Format and clippy, warnings as errors
	cargo fmt --all --check
	cargo clippy $(BUILD) -- -D warnings

unit: setup ## All tests
	cargo test $(BUILD)
	cargo test $(FEATURES) --doc

test: lint unit ## What CI runs

fuzz: compilers ## Feed the decoders what a fuzzer makes of their seeds, FUZZ_SECONDS (20) a target
	@cargo +nightly --version >/dev/null 2>&1 || { echo "missing: a nightly Rust, which fuzzing needs (rustup toolchain install nightly)"; exit 1; }
	@command -v cargo-fuzz >/dev/null || { echo "installing cargo-fuzz"; cargo install --quiet --locked cargo-fuzz; } \
	  || { echo "missing: cargo-fuzz (cargo install --locked cargo-fuzz)"; exit 1; }
	cargo +nightly fuzz build --fuzz-dir broker/fuzz --target-dir $(FUZZ_DIR)
	@for target in $(FUZZ_TARGETS); do \
	  found=$(FUZZ_DIR)/corpus/$$target; log=$(FUZZ_DIR)/$$target.log; mkdir -p $$found; \
	  cargo +nightly fuzz run --fuzz-dir broker/fuzz --target-dir $(FUZZ_DIR) $$target $$found broker/fuzz/corpus/$$target \
	    -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 >$$log 2>&1 || { tail -n 60 $$log; exit 1; }; \
	  sed -n "s/^#\([0-9]*\).*DONE.*/$$target: \1 inputs in $(FUZZ_SECONDS) s/p" $$log; \
	done

prove: setup ## The full numbers: the same tests with larger rounds
	@date -u
	WEIR_PROVE=1 cargo test $(BUILD)
	$(MAKE) fuzz

# Dependencies are compiled optimised in the dev profile already: where it has built RocksDB, that is linked again.
bench: setup ## The bare pipe and weir in turns: how near weir comes to what the machine allows
	@lib=$$(ls -t $(TARGET_DIR)/debug/build/librocksdb-sys-*/out/librocksdb.a 2>/dev/null | head -n 1 || true); \
	if [ -n "$$lib" ]; then export ROCKSDB_STATIC=1 ROCKSDB_LIB_DIR="$$(dirname "$$(realpath "$$lib")")"; fi; \
	cargo build --release -p weir-broker -p weir-bench
	$(TARGET_DIR)/release/weir-bench gate --messages 300000 --runs 3
