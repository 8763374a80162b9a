# tidemark: `make demo` and `make test` are the two commands; `make help` lists the others.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where it is set, each process compiles all that it imports again: 13 s in place of 6 s for a server.
unexport PYTHONDONTWRITEBYTECODE
SBOM_VENV := .venv-sbom
LOCK_VENV := .venv-lock
# Python compiles what it imports, which is a small part of what is installed.
PIP_INSTALL := $(BIN)/pip install --no-compile --quiet --quiet --disable-pip-version-check
# torch has no hashes, because its builds differ: docs/adr/0006-pinned-dependencies.md.
define install
@$(PIP_INSTALL) --require-hashes --no-deps -r $(1)
@$(PIP_INSTALL) -c constraints.txt torch
@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
endef

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: pyproject.toml constraints.txt requirements.txt
	@echo "Installing tidemark into $(VENV) (about 2 GB, one to two minutes) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,requirements.txt)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt requirements-dev.txt
	@echo "Installing tidemark and what checks and tests need into $(VENV) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call install,requirements-dev.txt)
	@touch $(VENV)/.installed $@

.PHONY: install
install: $(VENV)/.installed ## Put tidemark and everything it needs into .venv

.PHONY: demo
demo: $(VENV)/.installed ## Run the whole job on a simulated web, offline; writes tidemark-demo/
	@$(BIN)/tidemark demo

.PHONY: verify-demo
verify-demo: $(VENV)/.installed ## Run the demo for five seeds and check that the planted cutoffs come back
	@$(BIN)/python -m benchmarks.verify_demo

.PHONY: verify-statistics
verify-statistics: $(VENV)/.installed-dev ## Measure coverage and power by simulation (many hours)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.statistics --record
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.statistics.power --worlds 40

# docs/testing.md describes the marks. A file stays on one worker, which starts its servers once. One more
# worker than cores runs while others wait.
# Threads of OpenBLAS that wait for each other spin, and starve the other workers.
WORKERS := $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Of extras, these have the tests that `make test` runs; to import the others takes seconds.
SMOKE = $(shell grep -rl --include='test_*.py' 'mark.smoke' extras)
STANDARD := not (matrix or slow or extra)
NOT_FAST := server or process or torch or matrix or slow or long or extra

.PHONY: test
test: $(VENV)/.installed-dev chromium servers ## Install what tests need and run all but the longest
	@$(PYTEST) -m "$(STANDARD)" tests $(SMOKE)

# Workers that start together on a new checkout would each compile all modules.
.PHONY: compiled
compiled: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest --collect-only -qq -m "$(STANDARD)" tests $(SMOKE) > /dev/null 2>&1 || true

.PHONY: test-fast
test-fast: $(VENV)/.installed-dev ## Run the quick tests; list those that took more than a second
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not ($(NOT_FAST))" --list-above 1 tests $(SMOKE)

.PHONY: test-all
test-all: $(VENV)/.installed-dev chromium servers lake ## Run every test, before a release
	@$(PYTEST) tests extras

.PHONY: lake
lake: $(VENV)/.installed-dev ## Put a DuckDB client and its extensions for a lake into .venv
	@if [ -e extras/lake/requirements.txt ]; then $(PIP_INSTALL) --no-deps -r extras/lake/requirements.txt; fi

.PHONY: test-ducklake
test-ducklake: lake servers ## Test copies of the snapshot: Parquet, DuckLake, PostgreSQL, S3
	@$(BIN)/python -m pytest extras/lake/tests

.PHONY: chromium
chromium: $(VENV)/.installed-dev
	@deployments/install-chromium.sh $(BIN)

.PHONY: servers
servers:
	@deployments/install-caddy.sh
	@deployments/install-postgresql.sh

.PHONY: check
check: check-types check-text ## Lint, format, types, import rules, limits, words, SQL, spelling, Dockerfile

.PHONY: check-types
check-types: $(VENV)/.installed-dev
	@$(BIN)/mypy

.PHONY: check-text
check-text: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.house
	@$(BIN)/sqlfluff lint warehouse reports extras tests --processes 0 --disable-progress-bar
	@$(BIN)/codespell
	@$(BIN)/hadolint Dockerfile

.PHONY: format
format: $(VENV)/.installed-dev ## Format Python and SQL
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@$(BIN)/sqlfluff fix warehouse reports extras --disable-progress-bar

.PHONY: bench
bench: $(VENV)/.installed-dev ## Measure crawling, scoring and the warehouse; prints ratios
	@$(BIN)/python -m benchmarks

.PHONY: real
real: $(VENV)/.installed ## Score Gemma 3 270M on real text of 2022 to 2026: docs/real.md
	@$(PIP_INSTALL) --no-deps -c constraints.txt gguf
	@$(BIN)/python -m benchmarks real $(REAL)

.PHONY: figures
figures: $(VENV)/.installed-dev ## Write sizes and coupling into docs/architecture.md again
	@$(BIN)/python -m tools.figures --write

.PHONY: handbook
handbook: $(VENV)/.installed ## Write docs/warehouse.md again, after a change of tables or views
	@$(BIN)/python -m tools.handbook

$(LOCK_VENV)/bin/uv:
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/pip install --quiet --disable-pip-version-check uv==0.13.9

# uv reads hashes from the index; pip-compile would download the files of all platforms.
LOCK := $(LOCK_VENV)/bin/uv pip compile pyproject.toml -c constraints.txt --generate-hashes \
  --universal --python-version 3.11 --no-annotate --no-header --quiet
WITHOUT_TORCH := awk '/^[a-zA-Z]/ {keep = !/^(torch|triton|cuda-|nvidia-)/ || /^nvidia-ml-py/} keep'

.PHONY: constraints
constraints: $(VENV)/.installed-dev $(LOCK_VENV)/bin/uv ## Pin every dependency again
	@{ head -2 constraints.txt; \
	   $(BIN)/pip-compile --all-extras --strip-extras --no-emit-index-url --no-emit-find-links \
	     --no-header --no-annotate --quiet --output-file - pyproject.toml \
	   | grep -E '^[a-zA-Z]' | sed 's/+cpu//'; } > constraints.new
	@mv constraints.new constraints.txt
	@{ head -2 requirements.txt; $(LOCK) --extra telemetry | $(WITHOUT_TORCH); } > lock.new
	@{ head -2 requirements.txt; $(LOCK) --extra dev --extra bench | $(WITHOUT_TORCH); } > dev.new
	@mv lock.new requirements.txt && mv dev.new requirements-dev.txt

# The tool has a venv of its own: it needs another chardet than constraints.txt has.
$(SBOM_VENV)/bin/cyclonedx-py:
	@$(PYTHON) -m venv $(SBOM_VENV)
	@$(SBOM_VENV)/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0

.PHONY: sbom
sbom: $(VENV)/.installed $(SBOM_VENV)/bin/cyclonedx-py ## Write sbom.json (CycloneDX): what is installed, with licences
	@$(SBOM_VENV)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file sbom.json $(BIN)/python

.PHONY: clean
clean: ## Remove the demo's data and all caches (not .venv)
	@rm -rf tidemark-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
