# bird-realtime: `make help` lists the commands.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
QUICK ?=
ONLY ?=
comma := ,

CC := gcc
CXX := g++
VENV := build/venv/bin
PYTEST := $(VENV)/python -m pytest -q -c bindings/python/pyproject.toml --rootdir . --timeout 120
# Several tests at a time, in an order that SEED decides: docs/testing.md.
ORDER := $(or $(SEED),$(shell date +%s))
SHUFFLED := $(PYTEST) -p randomly --randomly-seed=$(ORDER) --randomly-dont-reset-seed --dist loadgroup --numprocesses
PROGRAM_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -Werror
LIBRARY_FLAGS := -Ibuild/include -Lbuild/lib -Wl,-rpath,$(CURDIR)/build/lib -lbirdrealtime -lpthread
export BIRDREALTIME_LIBRARY := $(CURDIR)/build/lib/libbirdrealtime.so

# All C programs of the repository are built into one directory.
C := build/c
EXAMPLES := $(patsubst examples/c/%.c,$(C)/%,$(wildcard examples/c/*.c))
HARNESS := $(C)/harness $(C)/client_script
SCALE := $(C)/scale $(C)/scale_edge
SOAK := $(C)/soak $(C)/heap.so
TORTURE := $(C)/torture
HOSTS := $(addprefix $(C)/,host_check curl_host load_host hostile_host)
HOSTS_CPP := $(C)/throwing_host
BENCH_PEERS := $(addprefix $(C)/,flood_server many_server auth_server load_time) \
    $(addprefix $(C)/limit_,recv walk epoll first auth trigger)
BENCH_OTHERS := $(addprefix $(C)/,flood_server_tls scale_edge_tls limit_tls peer_libwebsockets peer_libwebsockets_idle)
BENCH_CLIENTS := $(addprefix $(C)/client_,handler queue first many private trigger)
PROGRAMS := $(EXAMPLES) $(HARNESS) $(HOSTS) $(HOSTS_CPP) $(SCALE) $(SOAK) $(TORTURE) $(BENCH_PEERS) $(BENCH_CLIENTS) $(C)/count_alloc.so $(C)/names.so $(C)/clock.so $(C)/faults.so $(C)/waits.so

.PHONY: all help setup packages venv library programs demo test lint format bench lab simulate mutants sanitize valgrind scale soak torture debian13 fuzz conformance abi autobahn install uninstall clean

help: ## list the commands
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/    make \1\t\2/p' Makefile | expand -t 20

all: library ## build build/lib/libbirdrealtime.so*, build/include and build/lib/pkgconfig

setup: ## install what is missing: Debian packages, and a Python environment in build/venv
	@scripts/setup

packages:
	@scripts/find-swift
	@scripts/install-packages

venv: packages
	@scripts/make-venv

library: packages
	@echo "library: build/lib/libbirdrealtime.so"
	@scripts/build-library

programs: venv $(PROGRAMS)

demo: programs ## start a local edge and watch C, Python and Swift programs talk through it
	@examples/demo/run

test: packages ## run every test that fits in eight minutes, those in Python in an order that SEED decides: docs/testing.md
	@$(MAKE) --no-print-directory --jobs 2 programs
	@scripts/check-library
	@scripts/check-header
	@scripts/check-pure
	@scripts/abi
	@echo "test: Swift"
	@swift test --quiet --disable-xctest --jobs 2
	@echo "test: the order of the tests in Python is that of SEED=$(ORDER)"
	@echo "test: Python package and edge"
	@$(SHUFFLED) 2 bindings/python/tests
	@echo "test: the library against servers"
	@BIRDREALTIME_SWIFT_PROGRAMS=$(CURDIR)/.build/debug $(SHUFFLED) 3 Tests/integration Tests/Mutants
	@echo "test: faults and what a program is told of them"
	@$(SHUFFLED) 0 Tests/lab

lab: programs ## break what can break, and measure what is told, how long service is gone and what is lost: docs/reliability.md; ONLY=name,...
	@$(PYTEST) --timeout 900 Tests/lab/test_lab.py --cases $(or $(ONLY),all)

sanitize: programs ## run the tests' programs under address, leak, undefined-behaviour and thread sanitizers; an hour
	@$(VENV)/python scripts/sanitize address
	@$(VENV)/python scripts/sanitize thread

valgrind: programs ## run the C harness under valgrind; half an hour
	@$(VENV)/python scripts/sanitize valgrind

lint: setup ## check the form and the types of all source text; a warning is an error
	@scripts/lint

format: setup ## bring all source text into form
	@echo "format: Swift, C, Python"
	@git ls-files -co --exclude-standard '*.swift' | xargs -r swift format --in-place --parallel
	@git ls-files -co --exclude-standard '*.c' '*.cpp' '*.h' | xargs -r $(VENV)/clang-format -i
	@$(VENV)/ruff format --quiet .

bench: programs ## measure against other clients and the limits of this machine; QUICK=1, ONLY=floods,...: docs/performance.md
	@scripts/setup-benchmark
	@$(MAKE) --no-print-directory $(BENCH_OTHERS)
	@scripts/build-swift-bench
	@build/benchmark-venv/bin/python Benchmarks/run.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

simulate: setup ## try sessions in SEEDS (1000) hostile worlds from SEED (1) on, each for STEPS at most: docs/testing.md
	@echo "simulate: build/simulate/simulate"
	@scripts/build-simulation
	@SEED=$(SEED) SEEDS=$(SEEDS) STEPS=$(STEPS) TRACE=$(TRACE) build/simulate/simulate

mutants: setup ## plant faults in the core, one at a time, each of which the simulation must find; ONLY=id,...: docs/testing.md
	@$(VENV)/python Tests/Mutants/run.py $(subst $(comma), ,$(ONLY))

fuzz: setup ## feed each target of Tests/Fuzz for SECONDS (60) with what libFuzzer makes up; ONLY=frames,...; docs/testing.md
	@$(VENV)/python scripts/fuzz --seconds "$(or $(SECONDS),60)" --only "$(ONLY)" $(if $(TAKE),--take)

conformance: library venv ## compare how JSON and UTF-8 are read with Python and Foundation, COUNT (20000) documents from SEED (1)
	@swift build --quiet --product conformance --jobs 2
	@$(VENV)/python Tests/integration/conformance.py --count "$(or $(COUNT),20000)" --seed "$(or $(SEED),1)"

torture: programs ## call every function at random from THREADS (4) threads for SECONDS (60), as SEED (1) says, against a bad edge
	@$(TORTURE) $(or $(SECONDS),60) $(or $(SEED),1) $(or $(THREADS),4)

autobahn: setup ## try the WebSocket layer against the Autobahn test suite, which needs PYTHON27=, a Python 2.7 with pip
	@PYTHON27="$(PYTHON27)" $(VENV)/python scripts/autobahn

scale: programs ## measure ten thousand clients in one process, with restarts of their servers; about three minutes
	@$(VENV)/python Tests/integration/scale.py

soak: programs ## keep clients alive through faults for MINUTES (10), and judge that nothing grows and nothing is lost: docs/testing.md
	@nice $(VENV)/python Tests/integration/soak.py --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

abi: setup ## take a new snapshot of the binary interface after an addition, or for a new version
	@scripts/abi --take

debian13: programs ## try the built library in a Debian 13 of its own; needs root and debootstrap
	@$(VENV)/python scripts/debian13

install: all ## install below PREFIX (/usr/local); for packages also LIBDIR and DESTDIR
	@echo "install: $(DESTDIR)$(PREFIX)"
	@scripts/install-library "$(DESTDIR)" "$(PREFIX)" "$(LIBDIR)"

uninstall: ## remove what install with the same PREFIX, LIBDIR and DESTDIR has installed
	@echo "uninstall: $(DESTDIR)$(PREFIX)"
	@scripts/uninstall-library "$(DESTDIR)" "$(PREFIX)" "$(LIBDIR)"

clean: ## remove all that was built, and the Python environment
	@echo "clean: build, .build"
	@rm -rf build .build

# A program needs compiling again when the header has changed, not when the library has.
$(EXAMPLES) $(HARNESS) $(HOSTS) $(HOSTS_CPP) $(C)/scale $(C)/soak $(TORTURE) $(BENCH_CLIENTS): include/birdrealtime.h | library

$(C):
	@mkdir -p $@

$(C)/libuv: LIBRARY_FLAGS += $(shell pkg-config --cflags --libs libuv)
$(EXAMPLES): $(C)/%: examples/c/%.c | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(LIBRARY_FLAGS)

$(C)/harness: $(wildcard Tests/CHarness/*.c)
$(C)/client_script: $(wildcard Tests/CHarness/script/*.c)
$(HARNESS): $(wildcard Tests/CHarness/*.h Tests/CHarness/script/*.h) | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^) $(LIBRARY_FLAGS)

$(C)/scale_edge: Tests/Scale/edge.c Benchmarks/stream_plain.c $(wildcard Benchmarks/*.h) | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^)

$(C)/scale: $(filter-out Tests/Scale/edge.c,$(wildcard Tests/Scale/*.c)) Tests/Scale/scale.h | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^) $(LIBRARY_FLAGS) -lm

$(C)/soak: $(wildcard Tests/Soak/*.c) Tests/Soak/soak.h | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^) $(LIBRARY_FLAGS) -lsodium

$(TORTURE): $(wildcard Tests/Torture/*) Benchmarks/server_side.h Benchmarks/accept_key.h | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^) $(LIBRARY_FLAGS)

$(C)/host_check: HOST_FLAGS := $(LIBRARY_FLAGS) -lm
$(C)/hostile_host: HOST_FLAGS := $(LIBRARY_FLAGS)
$(C)/curl_host: HOST_FLAGS := $(LIBRARY_FLAGS) -lcurl
$(C)/load_host: HOST_FLAGS := -Ibuild/include -rdynamic -ldl
$(HOSTS): $(C)/%: Tests/Hosts/%.c | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(HOST_FLAGS)
$(HOSTS_CPP): $(C)/%: Tests/Hosts/%.cpp | $(C)
	@$(CXX) $(patsubst -std=c11,-std=c++17,$(PROGRAM_CFLAGS)) -o $@ $< $(LIBRARY_FLAGS)

$(BENCH_CLIENTS): $(C)/%: Benchmarks/%.c $(wildcard Benchmarks/*.h) | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(LIBRARY_FLAGS)

$(C)/flood_server: Benchmarks/stream_plain.c
$(C)/flood_server_tls: Benchmarks/flood_server.c Benchmarks/stream_tls.c
$(C)/scale_edge_tls: Tests/Scale/edge.c Benchmarks/stream_tls.c
$(C)/limit_tls: Benchmarks/limit_tls.c
$(C)/peer_libwebsockets: Benchmarks/peer_libwebsockets.c
$(C)/peer_libwebsockets_idle: Benchmarks/peer_libwebsockets_idle.c Tests/Scale/process.c Tests/Scale/scale.h
$(BENCH_PEERS): $(C)/%: Benchmarks/%.c
$(BENCH_PEERS) $(BENCH_OTHERS): $(wildcard Benchmarks/*.h) | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -Iinclude -o $@ $(filter %.c,$^) $(BENCH_LIBRARIES)

$(addprefix $(C)/,flood_server_tls scale_edge_tls limit_tls): BENCH_LIBRARIES = -lssl -lcrypto
$(C)/peer_libwebsockets $(C)/peer_libwebsockets_idle: BENCH_LIBRARIES = $(shell pkg-config --cflags --libs libwebsockets)

$(C)/count_alloc.so: Benchmarks/count_alloc.c
$(C)/names.so: Tests/CHarness/preload/names.c
$(C)/clock.so: Tests/CHarness/preload/clock.c
$(C)/heap.so: Tests/Soak/heap.c
$(C)/faults.so: Tests/CHarness/preload/faults.c
$(C)/waits.so: Tests/CHarness/preload/waits.c
$(C)/%.so: | $(C)
	@$(CC) $(PROGRAM_CFLAGS) -shared -fPIC -o $@ $<
