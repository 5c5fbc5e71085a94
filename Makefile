# bird-realtime: `make help` lists the commands.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
QUICK ?=

CC := gcc
VENV := build/venv/bin
PROGRAM_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -Werror
LIBRARY_FLAGS := -Ibuild/include -Lbuild/lib -Wl,-rpath,$(CURDIR)/build/lib -lbirdrealtime -lpthread
export BIRDREALTIME_LIBRARY := $(CURDIR)/build/lib/libbirdrealtime.so

EXAMPLES := $(patsubst %.c,build/%,$(wildcard examples/c/*.c))
TEST_PROGRAMS := build/tests/harness build/tests/client_script
BENCH_PEERS := flood_server limit_recv limit_walk
BENCH_CLIENTS := client_loop client_queue
BENCHES := $(addprefix build/bench/,$(BENCH_PEERS) $(BENCH_CLIENTS) count_alloc.so)

.PHONY: all help setup library programs demo test lint format bench install clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/    make \1\t\2/p' Makefile | expand -t 20

all: library ## build build/lib/libbirdrealtime.so*, build/include and build/lib/pkgconfig

setup: ## install what is missing: Debian packages, and a Python environment in build/venv
	@scripts/setup

library: setup
	@echo "library: build/lib/libbirdrealtime.so"
	@scripts/build-library

programs: $(EXAMPLES) $(TEST_PROGRAMS)

demo: programs ## start a local edge and watch C, Python and Swift programs talk through it
	@examples/demo/run

test: programs ## run every test that fits in ten minutes
	@scripts/check-library
	@scripts/check-header
	@echo "test: Swift"
	@swift test --quiet --disable-xctest --jobs 2
	@echo "test: Python package, edge, and every face against servers"
	@$(VENV)/python -m pytest -q -c bindings/python/pyproject.toml --rootdir . --timeout 120 \
		bindings/python/tests Tests/integration

lint: setup ## check the form and the types of all source text; a warning is an error
	@scripts/lint

format: setup ## bring all source text into form
	@echo "format: Swift, C, Python"
	@git ls-files -co --exclude-standard '*.swift' | xargs -r swift format --in-place --parallel
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r $(VENV)/clang-format -i
	@$(VENV)/ruff format --quiet .

bench: $(BENCHES) ## measure against the limits of this machine; QUICK=1 takes less than two minutes
	@$(VENV)/python Benchmarks/run.py $(if $(QUICK),--quick)

install: all ## install below PREFIX (/usr/local); for packages also LIBDIR and DESTDIR
	@echo "install: $(DESTDIR)$(PREFIX)"
	@scripts/install-library "$(DESTDIR)" "$(PREFIX)" "$(LIBDIR)"

clean: ## remove all that was built, and the Python environment
	@echo "clean: build, .build"
	@rm -rf build .build

# The library is a shared one: its programs need compiling again only when the header has changed.
build/include/birdrealtime.h: | library

build/examples/c/%: examples/c/%.c build/include/birdrealtime.h
	@mkdir -p $(@D)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(LIBRARY_FLAGS)

build/tests/harness: $(wildcard Tests/CHarness/*.c)
build/tests/client_script: $(wildcard Tests/CHarness/script/*.c)
$(TEST_PROGRAMS): $(wildcard Tests/CHarness/*.h Tests/CHarness/script/*.h) build/include/birdrealtime.h
	@mkdir -p $(@D)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $(filter %.c,$^) $(LIBRARY_FLAGS)

build/bench/%.so: Benchmarks/%.c
	@mkdir -p $(@D)
	@$(CC) $(PROGRAM_CFLAGS) -shared -fPIC -o $@ $<

$(addprefix build/bench/,$(BENCH_PEERS)): build/bench/%: Benchmarks/%.c $(wildcard Benchmarks/*.h)
	@mkdir -p $(@D)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $<

$(addprefix build/bench/,$(BENCH_CLIENTS)): build/bench/%: Benchmarks/%.c $(wildcard Benchmarks/*.h) build/include/birdrealtime.h
	@mkdir -p $(@D)
	@$(CC) $(PROGRAM_CFLAGS) -o $@ $< $(LIBRARY_FLAGS)
