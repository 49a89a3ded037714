# make run     set up, build, measure this machine, write the report of what was measured; SET=full
# make report  write it again, of the latest session
# make test    set up, then everything that CI checks
# make setup   set up what measures: no MPI, no programs
# make build   set up, build the programs for this CPU (host) and for simulated nodes (sim)
# make coverage  the lines that the quick tests run, in half their time again; fails below 90 %
# make lint    formatters, linters, types, what is made of the vocabulary; make format mends the first
# make faults  make each fault of the catalogue, and write what was said (docs/faults.md); 2 minutes
# make mutants  make slips in the code that judges, and write which test sees each (docs/mutants.md); 2 minutes
# make fuzz    damaged texts for every reader of foreign text, FUZZ="--seconds 60" (docs/fuzzing.md)
# make docs    the site of docs/ in build/site; what it has of the code is written anew
# make snapshots  what the commands say and write (tests/snapshots), anew: then read git diff

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# Folders of build; the name begins with the runtime.
BUILDS := host sim
# What make run measures: smoke, node or full.
SET := node
# What `make test` adds to the configuration of a build.
CMAKE_OPTIONS :=
# Options of a build whose output is no terminal.
QUIET := $(if $(MAKE_TERMOUT),,-- --quiet)
# Programs that hang and sessions of ReFrame are waited for: three workers for two cores.
WORKERS = $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))
PYTEST = python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
CXX_SOURCES = $(shell find src tests -name '*.cpp' -o -name '*.hpp' -o -name '*.h')

.PHONY: run report test build programs setup setup-test coverage faults mutants fuzz docs snapshots lint format unit-tests compile-checks clean

# What ReFrame writes goes to a log; the terminal has a line for each check, and then one screen.
run: build
	@source ./env.sh; status=0; \
	mkdir -p "$$FABRICHECK_RESULTS/logs"; \
	log=$$FABRICHECK_RESULTS/logs/run-$$(date +%Y%m%dT%H%M%S)-$$$$.log; \
	echo "run: measuring, set $(SET)"; \
	reframe --nocolor --mode=$(SET) -r 2>&1 | tee "$$log" | python ci/progress.py || status=$$?; \
	echo "run: writing the report"; \
	report=$$(fabricheck report) || status=$$(( status ? status : $$? )); \
	echo; fabricheck summary || status=$$(( status ? status : $$? )); \
	echo; echo "$$report"; echo "Log: $$log"; \
	exit $$status

report:
	@source ./env.sh; fabricheck report

setup:
	@ci/setup.sh

build:
	@ci/setup.sh build
	@$(MAKE) --no-print-directory programs

# Configures quietly, and builds so where nobody watches; what fails shows what it said. The MPI is
# that of .venv/mpich, whose mpiexec starts the programs of local:host (config/sites/local.py).
programs:
	@mkdir -p build; export PATH="$$PWD/.venv/mpich/bin:$$PWD/.venv/bin:$$PATH"; for build in $(BUILDS); do \
	  log=build/$$build.cmake.log; \
	  cmake -G Ninja -S . -B build/$$build -DFABRICHECK_RUNTIME=$${build%%-*} -DFABRICHECK_MPI=ON \
	    $(CMAKE_OPTIONS) > $$log \
	    || { cat $$log; exit 1; }; \
	  cmake --build build/$$build $(QUIET); \
	done

setup-test:
	@ci/setup.sh test

test: setup-test lint unit-tests compile-checks
	source ./env.sh; $(PYTEST) -m "not slow"
	source ./env.sh; $(PYTEST) -m slow

# Of the quick tests alone: tracing would double the time of whole sessions.
coverage: setup-test
	source ./env.sh; $(PYTEST) -m "not slow" --cov=fabricheck --cov-fail-under=90

# FAULTS: options, such as --rows 4,16 or --references lumi.
faults: setup-test
	source ./env.sh; PYTHONPATH=tests python -m faults $(FAULTS)

# MUTANTS: options, such as "--only median".
mutants: setup-test
	source ./env.sh; PYTHONPATH=tests python -m mutants $(MUTANTS)

# FUZZ: options, such as --seconds 3600, --reader rocm-smi or --kills 50.
fuzz: setup-test
	source ./env.sh; PYTHONPATH=tests python -m fuzzing $(FUZZ)

docs: setup-test
	.venv/bin/python ci/docs_pages.py
	.venv/bin/python -m mkdocs build
	@echo "docs: build/site/index.html"

snapshots: setup-test
	source ./env.sh; WRITE_SNAPSHOTS=1 $(PYTEST) tests/snapshots

lint: setup-test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	.venv/bin/clang-format --dry-run --Werror $(CXX_SOURCES)
	.venv/bin/python ci/vocabulary.py --check

format: setup-test
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $(CXX_SOURCES)

# The unit tests of the host runtime have a build of their own, with sanitizers, by the clang that
# hipcc needs.
unit-tests: setup-test
	@$(MAKE) --no-print-directory programs BUILDS=host \
	  CMAKE_OPTIONS="-DFABRICHECK_TESTS=OFF -DFABRICHECK_WERROR=ON"
	@$(MAKE) --no-print-directory programs BUILDS=host-sanitized \
	  CMAKE_OPTIONS="-DCMAKE_BUILD_TYPE=Sanitized -DCMAKE_CXX_COMPILER=clang++-15 -DFABRICHECK_WERROR=ON"
	@$(MAKE) --no-print-directory programs BUILDS=sim \
	  CMAKE_OPTIONS="-DFABRICHECK_TESTS=ON -DFABRICHECK_WERROR=ON"
	for build in host-sanitized sim; do ctest --test-dir build/$$build --output-on-failure; done

compile-checks: setup-test
	ci/compile-check.sh rocm build/rocm
	ci/compile-check.sh cuda build/cuda

clean:
	rm -rf build results env.sh .venv
