# Everything a developer or a reader runs. `make help` lists it.
#
# The virtual environment is built once for each set of needs; a stamp file beside it remembers,
# so that a second `make test` starts testing at once.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Tests that share a cluster form a group, which one worker runs. There is a worker for each core, so
# each takes one thread for its linear algebra.
PYTEST_ARGS ?= -n $(shell nproc) --dist loadgroup

# The folder of real data that some tests and examples read; they skip or say so without it.
ifndef DPREG_DATA
ifneq ($(wildcard ../shared/data),)
export DPREG_DATA := $(abspath ../shared/data)
endif
endif

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Pins hold for what pip builds with, too. PIP_CONSTRAINT is read by pip itself.
export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# rpy2 is built without a compiled part: no compiler and no headers of R are needed.
export RPY2_CFFI_MODE := ABI
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --no-input
# What locks/NAME.txt pins, each file by its hash, and then the project alone: pip takes no hashes beside -e.
define install
$(PIP_INSTALL) --require-hashes -r locks/$(1).txt
$(PIP_INSTALL) --no-deps --no-build-isolation -e .
endef

.PHONY: help venv demo test packages unit lint vignettes pages-numbers audit audit-calls mutants coverage bench replication holds docs docs-look fresh lock matrix release r-check r-readme r-docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- the environment ---------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "dpreg needs Python 3.11 or later; say which with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || scripts/apt_packages.sh python
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dpreg-run: pyproject.toml locks/run.txt | $(BIN)/python
	$(call install,run)
	touch $@

$(VENV)/.dpreg-test: pyproject.toml locks/test.txt | $(BIN)/python
	$(call install,test)
	touch $@ $(VENV)/.dpreg-run

$(VENV)/.dpreg-docs: pyproject.toml locks/docs.txt | $(BIN)/python
	$(call install,docs)
	touch $@ $(VENV)/.dpreg-run

# Debian keeps the library and the headers of Python, which R needs, in packages of their own.
$(VENV)/.dpreg-r: pyproject.toml locks/r.txt packages.apt | $(BIN)/python
	scripts/apt_packages.sh r $$($(BIN)/python scripts/python_packages.py)
	$(call install,r)
	touch $@ $(VENV)/.dpreg-run $(VENV)/.dpreg-test

# The same rpy2 compiled against this machine's R, in a folder of its own: both modes are tested.
$(VENV)/rpy2-api/.built: locks/r.txt | $(VENV)/.dpreg-r
	rm -rf $(@D)
	awk '/^rpy2-rinterface==/ { on = 1 } on { print } on && !/\\$$/ { exit }' locks/r.txt >$(VENV)/rpy2-api.txt
	RPY2_CFFI_MODE=API $(PIP_INSTALL) --no-deps --no-build-isolation --no-cache-dir --require-hashes \
		--no-binary rpy2-rinterface --target $(@D) -r $(VENV)/rpy2-api.txt
	touch $@

venv: $(VENV)/.dpreg-test $(VENV)/.dpreg-docs  ## set up .venv with all that development needs

# ---- what readers run --------------------------------------------------------------------------

demo: $(VENV)/.dpreg-run  ## select variables in the RAND health data at eps = 1
	$(BIN)/python examples/demo.py

# ---- what developers run -----------------------------------------------------------------------

# `docs` runs the vignettes in Jupyter; a warning of a cell or of Sphinx is an error.
# The others run one after the other beside `unit`; what they install is there before they start.
test: packages $(VENV)/.dpreg-docs $(VENV)/rpy2-api/.built  ## run the tests and every static check
	$(MAKE) --jobs=2 --output-sync=line unit r-check docs lint

# `unit` asks for them in its recipe: were they a prerequisite, `docs` would start before it beside r-check.
packages: $(VENV)/.dpreg-test
	@command -v java >/dev/null || scripts/apt_packages.sh java
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || scripts/apt_packages.sh postgres
	@command -v pdflatex >/dev/null || scripts/apt_packages.sh latex

unit: $(VENV)/.dpreg-test
	@$(MAKE) --no-print-directory packages
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --doctest-modules tests dpreg --ignore=tests/r_bridge $(PYTEST_ARGS)

lint: $(VENV)/.dpreg-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=r_bridge/dpreg/inst/python $(BIN)/mypy -p dpreg_bridge
	$(BIN)/lint-imports --no-logo

r-check: $(VENV)/.dpreg-r $(VENV)/rpy2-api/.built  ## build and check the R package, vignette included
	DPREG_RPY2_API=$(abspath $(VENV))/rpy2-api scripts/r_check.sh $(BIN)/python $(PYTEST_ARGS)

r-readme: $(VENV)/.dpreg-r  ## check the R package where only its README's commands were run, vignette included
	scripts/r_readme.sh

r-docs:  ## write the R package's NAMESPACE and man/ from its comments
	scripts/apt_packages.sh r-docs
	Rscript -e 'roxygen2::roxygenise("r_bridge/dpreg", load_code = "source")'

# `unit` runs two of them; `make docs` runs the pages in Jupyter, as they are published.
vignettes: $(VENV)/.dpreg-test  ## run the vignettes as a reader would paste them
	$(BIN)/python -m pytest tests/test_vignettes.py -m "audit or not audit" $(PYTEST_ARGS)

pages-numbers: $(VENV)/.dpreg-test  ## run the vignettes and put right each exact number that they assert
	PYTHONPATH=tests $(BIN)/python scripts/pages_numbers.py --write

audit: $(VENV)/.dpreg-test  ## run the privacy audits (slow)
	$(BIN)/python -m pytest -m audit

audit-calls: $(VENV)/.dpreg-test  ## print the table of docs/audited.md: the auditor on every public call (some three hours of one core)
	$(BIN)/python -m benchmarks.audited

mutants: $(VENV)/.dpreg-test  ## apply each known mutant to a copy and see the tests kill it (an hour of one core)
	PYTHONPATH=tests $(BIN)/python -m mutants

coverage: $(VENV)/.dpreg-test  ## measure which lines of dpreg the tests run
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests --ignore=tests/r_bridge --ignore=tests/mutants $(PYTEST_ARGS) --cov=dpreg --cov-report=term:skip-covered

bench: $(VENV)/.dpreg-test  ## time dpreg against its peers
	for name in $(patsubst benchmarks/%.py,%,$(filter-out benchmarks/_% benchmarks/audited.py,$(wildcard benchmarks/*.py))); do \
		echo "== $$name"; \
		$(BIN)/python -m "benchmarks.$$name"; \
	done

replication: $(VENV)/.dpreg-test  ## compare published regressions with their private releases (some twenty minutes)
	scripts/apt_packages.sh replication
	$(BIN)/python -m benchmarks.replication

holds: $(VENV)/.dpreg-test  ## see whether printed intervals hold the fit without privacy: the gate of a release (some ten minutes)
	scripts/apt_packages.sh holds
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.holds --jobs 2 --gate

docs: $(VENV)/.dpreg-docs  ## build the executed vignettes and the API reference into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

docs-look: docs  ## photograph every page at three widths; an overflow is an error (needs Chromium)
	@command -v chromium >/dev/null || scripts/apt_packages.sh look
	$(call install,look)
	$(BIN)/python scripts/docs_look.py docs/_build/html docs/_build/look

fresh:  ## run the README's commands in a bare Debian chroot (root, debootstrap)
	scripts/fresh.sh

matrix:  ## a dose of tests for each Python, with the newest and the oldest dependencies (PYTHONS="python3.12 ...")
	PYTHON="$(PYTHON)" scripts/matrix.sh $(PYTHONS)

release: | $(BIN)/python  ## build what is released into dist/, and check each part where it alone is installed
	scripts/apt_packages.sh r $$($(BIN)/python scripts/python_packages.py)
	PYTHON=$(BIN)/python scripts/release.sh

# PIP_CONSTRAINT is unset here: the point is to leave the old pins behind.
lock:  ## write locks/ and constraints.txt anew from the newest releases that pyproject.toml admits
	PYTHON="$(PYTHON)" PIP_CONSTRAINT= scripts/lock.sh

clean:  ## remove what the other targets made, .venv included
	rm -rf $(VENV) docs/_build docs/api docs/vignettes build dist audit-out .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis
