# make run     set up, build, measure this machine, its GPUs if it has some, and show the results;
#              SET=full, SYSTEM=local:sim-mi250x
# make report  write it again, of the latest session
# make check   lint, and the tests that are likeliest to see what differs from main: a minute
# make test    set up, build, lint and test: six to thirteen minutes in a new clone, by the machine
# make test-all  make test and all the rest, which CI runs before anything lands
# make times   time these, in new clones on this machine, and tell where their seconds go
# make setup   set up what measures: no MPI, no programs
# make build   set up, build the programs for this CPU (host) and for simulated nodes (sim)
# make coverage  the lines that the quick tests run, in half their time again; fails below 90 %
# make lint    formatters, linters, types, words of pages, what is made of the vocabulary; make format mends the first
# make faults  make each fault of the catalogue, and write what was said (docs/evidence/faults.md); half an hour
# make mutants  make slips in the code that judges, and write which test sees each (docs/evidence/mutants.md); 5 minutes
# make slips   draw random slips by a seed, and write which of them tests see (docs/evidence/slips.md); an hour
# make fuzz    damaged texts for every reader of foreign text, FUZZ="--seconds 60" or "--cases 900" (docs/evidence/fuzzing.md)
# make docs    the site of docs/ in build/site, with what it has of the code
# make snapshots  what the commands say and write (tests/snapshots), anew: then read git diff

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# Folders of build; the name begins with the runtime.
BUILDS := host sim
# What these two have in common, compiled before them.
COMMON := cpu
# What make run measures: smoke, node or full.
SET := node
# Where, as ReFrame's --system; empty for the GPUs, or else the memory and a simulated node.
SYSTEM :=
# What a build adds to the configuration, and what it builds.
CMAKE_OPTIONS :=
TARGET := all
# Options of a build whose output is no terminal.
QUIET := $(if $(MAKE_TERMOUT),,-- --quiet)
# What compiles a new build, where it is here with OpenMP and CXX names no other; else what CMake finds.
# Clang takes two thirds of GCC's time. In CI GCC does it, as of most users.
COMPILER := $(if $(filter test-all,$(MAKECMDGOALS)),,clang++-15)
# What pytest is started with besides.
PYTEST_OPTIONS :=
# Programs that hang and sessions of ReFrame are waited for: two workers a core.
WORKERS = $(shell echo $$(( $$(nproc) * 2 )))
PYTEST = python -m pytest --numprocesses=$(WORKERS) --dist=worksteal $(PYTEST_OPTIONS)
# The longest first.
LINTS := types sentences rules format imports cpp vocabulary schema prose steps
CXX_SOURCES = $(shell find src tests -name '*.cpp' -o -name '*.hpp' -o -name '*.h')
# Modules that are compiled once serve each worker and each process of a test.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run report check test test-all times build programs setup setup-test setup-full coverage faults mutants slips fuzz docs snapshots lint lint-tests $(addprefix lint-,$(LINTS)) format sanitized compile-checks clean

run:
	@ci/run.sh "$(SET)" "$(SYSTEM)"

report:
	@source ./env.sh; fabricheck report

setup:
	@ci/setup.sh

# Python packages come while the simulated node is compiled, which needs none of them.
# $(1): for whom it is set up. $(2): options of CMake, for the simulated node. $(3): arguments of make
# for what is made beside the programs of this CPU.
define set_up_and_build
@ci/setup.sh packages $(1)
@ci/setup.sh $(1) & setup=$$!; \
$(MAKE) --no-print-directory programs BUILDS=sim CMAKE_OPTIONS="$(2)" COMPILER=$(COMPILER) || { wait; exit 1; }; \
wait $$setup
@$(if $(3),$(MAKE) --no-print-directory $(3) & beside=$$!;,beside=;) \
$(MAKE) --no-print-directory programs BUILDS=host COMMON= COMPILER=$(COMPILER) || { wait; exit 1; }; \
wait $$beside
endef

build:
	$(call set_up_and_build,build,$(CMAKE_OPTIONS))

# Configures quietly, and builds so where nobody watches; what fails shows what it said. The MPI is
# that of .venv/mpich, whose mpiexec starts the programs of local:host (config/sites/local.py).
# Of host and sim a compiler reads only what itself has precompiled: build/cpu says which it is. Clang
# links by its own linker.
programs:
	@mkdir -p build; export PATH="$$PWD/.venv/mpich/bin:$$PWD/.venv/bin:$$PATH"; \
	if [ -z "$(filter host sim,$(BUILDS))" ]; then \
	  :; \
	elif [ -e build/cpu/CMakeCache.txt ]; then \
	  export CXX="$$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/cpu/CMakeCache.txt)"; \
	elif "$(COMPILER)" -fopenmp -x c++ -fsyntax-only - <<< '#include <omp.h>' 2> /dev/null; then \
	  export CXX="$${CXX:-$(COMPILER)}"; \
	fi; \
	if [[ "$(COMPILER):$${CXX:-}" == clang*clang* ]] && type -P ld.lld-15 > /dev/null; then \
	  export LDFLAGS="$${LDFLAGS:--fuse-ld=lld}"; \
	fi; \
	for build in $(if $(filter host sim,$(BUILDS)),$(COMMON)) $(BUILDS); do \
	  log=build/$$build.cmake.log parts= target=$(TARGET); \
	  case $$build in \
	    cpu) [ $$target = local_programs ] || target=all ;; \
	    host | sim) parts=-DFABRICHECK_PARTS=$$PWD/build/cpu ;; \
	  esac; \
	  cmake -G Ninja -S . -B build/$$build -DFABRICHECK_RUNTIME=$${build%%-*} -DFABRICHECK_MPI=ON \
	    $$parts $(CMAKE_OPTIONS) > $$log \
	    || { cat $$log; exit 1; }; \
	  cmake --build build/$$build --target $$target $(QUIET); \
	done

setup-test:
	@ci/setup.sh test

setup-full:
	@ci/setup.sh full

test:
	$(call set_up_and_build,test,-DFABRICHECK_TESTS=ON,lint LINTS="tests $(LINTS)")
	ctest --test-dir build/sim --output-on-failure
	source ./env.sh; $(PYTEST) -m "not full"

test-all: test sanitized compile-checks
	source ./env.sh; $(PYTEST) -m full
	$(MAKE) faults FAULTS=--without-hours
	$(MAKE) mutants
	$(MAKE) fuzz FUZZ="--cases 900"

check: setup-test lint
	source ./env.sh; python ci/check.py

times:
	@ci/times.sh

# Of the quick tests alone: tracing would double the time of whole sessions.
coverage: setup-test
	source ./env.sh; $(PYTEST) -m "not slow" --cov=fabricheck --cov-fail-under=90

# FAULTS: options, such as --rows 4,16 or --references lumi.
faults: setup-test
	source ./env.sh; python -m proof.faults $(FAULTS)

# MUTANTS: options, such as "--only median".
mutants: setup-test
	source ./env.sh; python -m proof.mutants $(MUTANTS)

# SLIPS: options, such as "--seed 2 --number 30".
slips: setup-test
	source ./env.sh; python -m proof.slips $(SLIPS)

# FUZZ: options, such as --seconds 3600, --reader rocm-smi or --kills 50.
fuzz: setup-test
	source ./env.sh; python -m proof.fuzzing $(FUZZ)

docs: setup-test
	.venv/bin/python -m mkdocs build
	@echo "docs: build/site/index.html"

snapshots: setup-test
	source ./env.sh; WRITE_SNAPSHOTS=1 $(PYTEST) tests/snapshots $$(grep -lr '[(, ]wording[,)]' tests --include='test_*.py')

# The parts run beside each other: most of them keep one core busy.
lint: setup-test
	@$(MAKE) --no-print-directory --jobs=$(shell nproc) --output-sync --keep-going \
	  $(addprefix lint-,$(LINTS))

lint-rules:
	.venv/bin/ruff check .
lint-format:
	.venv/bin/ruff format --check .
lint-types:
	.venv/bin/mypy
lint-imports:
	.venv/bin/lint-imports --no-cache
lint-cpp:
	@.venv/bin/clang-format --dry-run --Werror $(CXX_SOURCES)
lint-vocabulary:
	.venv/bin/python ci/vocabulary.py --check
lint-schema:
	.venv/bin/python ci/result_schema.py --check
lint-prose:
	.venv/bin/python ci/prose.py
lint-sentences:
	.venv/bin/python ci/own_sentences.py
lint-steps:
	.venv/bin/python ci/steppable.py
# All tests are imported once: then modules are compiled, and not by each worker of make test.
lint-tests:
	@mkdir -p build; source ./env.sh; python -m pytest -qq --collect-only > build/tests.log \
	  || { cat build/tests.log; exit 1; }

format: setup-test
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $(CXX_SOURCES)

# The unit tests of the host runtime, by the clang that hipcc needs.
sanitized: setup-test
	@$(MAKE) --no-print-directory programs BUILDS=host-sanitized \
	  CMAKE_OPTIONS="-DCMAKE_BUILD_TYPE=Sanitized -DCMAKE_CXX_COMPILER=clang++-15"
	ctest --test-dir build/host-sanitized --output-on-failure

compile-checks: setup-full
	ci/compile-check.sh rocm build/rocm
	ci/compile-check.sh cuda build/cuda

clean:
	rm -rf build results env.sh .venv
