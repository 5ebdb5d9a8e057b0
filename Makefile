# Everything runs in .venv, which `make setup` creates; `make demo` and `make test` call it by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.pii-tracer-installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast lint format types imports record clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with everything installed, Java and Spark's jars included

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed; set PYTHON=…")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/pii-tracer doctor --fetch
	touch $(STAMP)

demo: setup ## erase a person from a realistic lakehouse, with proof
	$(BIN)/pii-tracer demo

test: setup lint types imports ## every check and every test
	$(BIN)/python -m pytest

test-fast: setup ## the tests that need no Spark
	$(BIN)/python -m pytest -m 'not spark and not e2e'

lint: setup ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup ## mypy, strict
	$(BIN)/mypy

imports: setup ## who may import whom
	$(BIN)/lint-imports

record: setup ## run the sample estate's jobs with the OpenLineage listener and record their events anew
	$(BIN)/python -m sample_lineage.record

clean: ## remove what runs left behind (not the keys of real estates: only ./.pii-tracer/demo)
	rm -rf .pii-tracer/demo build dist
