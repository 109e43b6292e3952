# The front door. CMake does the work, in build/<preset>; `make help` lists what there is to say.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
JOBS ?= $(shell nproc)
export JOBS

.PHONY: all release demo test check format bench compare pictures soak outages attacks fuzz mutants install clean help

all: release ## build the program
	@echo "built build/release/sharewell"

release:
	@tools/deps build
	@cmake --preset release > /dev/null
	@cmake --build build/release -j $(JOBS) -- --quiet >&2

demo: release ## build, then run jobs on four emulated GPUs, kill the controller, ask what other policies would have done, suspend a training
	@tools/demo

test: ## build and run every test; the last line counts them
	@tools/deps build test
	@tools/test

check: ## format, clang-tidy, layers, headers, policy symbols
	@tools/deps
	@tools/check

format: ## let clang-format lay out the source
	@tools/deps check
	@find src emu include tests bench examples -name '*.[ch]' | xargs clang-format -i

bench: release ## measure speed and memory; prints the table of docs
	@bench/run

compare: release ## every policy on four traces: writes docs/comparison.md and its picture
	@bench/compare

pictures: release ## draw the pictures of README.md and docs/ from what they show
	@tools/pictures

soak: release ## thousands of random clusters and faults, checked after every step; a live cluster under kill -9
	@tools/deps build test
	@tools/soak

outages: release ## jobs go on through outages of ten minutes, a node that stands still for five, and clocks that jump; takes 40 minutes
	@tools/deps build test
	@OUTAGES=full SW_SOURCE_DIR=$(CURDIR) SHAREWELL=$(CURDIR)/build/release/sharewell tests/e2e/live-outage.sh

attacks: release ## as other users, jobs, agents and strangers, try to stop the jobs of an innocent user of a live cluster; needs root
	@tools/deps build test
	@tools/attacks

fuzz: ## run each fuzzer for FUZZ_SECONDS
	@tools/deps build test
	@cmake --preset fuzz > /dev/null
	@cmake --build build/fuzz -j $(JOBS) -- --quiet tests-fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) ctest --test-dir build/fuzz -L fuzz -j $(JOBS) --timeout $$(($(FUZZ_SECONDS) + 300)) --output-on-failure

mutants: ## put small faults into a copy of the source, one at a time: which tests notice?
	@tools/deps build test
	@tools/mutants

install: release ## install to PREFIX (below DESTDIR)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove all builds
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
