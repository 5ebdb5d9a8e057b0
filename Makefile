# Everything runs in .venv, which `make setup` creates; `make demo` and `make test` call it by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.pii-tracer-installed
# Test processes side by side: three fill two cores, as much of a test is waiting for a broker or a disk. Files come in
# their own order, since those with few and long tests (e2e, executors) come early in it; those that would come late,
# tests/conftest.py puts first.
WORKERS ?= 3
SIDE_BY_SIDE = -m pytest -p no:randomly -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python $(SIDE_BY_SIDE)
DOCS := .venv-docs
DOCS_STAMP := $(DOCS)/.installed
SITE := build/site
SPARK4 := .venv-spark4
SPARK4_STAMP := $(SPARK4)/.pii-tracer-installed
AIRFLOW := .venv-airflow
AIRFLOW_STAMP := $(AIRFLOW)/.pii-tracer-installed
PACKAGE := .venv-package
MUTANTS := .venv-mutants
MUTANTS_STAMP := $(MUTANTS)/.installed
CLASSES := $(VENV)/spark-classes.jsa
READY := $(VENV)/ready-spark
READY_STAMP := $(READY)/ready.json
AXE_VERSION := 4.14.1
AXE_SHA256 := 29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
AXE := $(VENV)/axe-core/axe.min.js
SPARK4_CLASSES := $(SPARK4)/spark-classes.jsa
# what needs Hudi, or Delta's REORG on executors (docs/stack.md)
SPARK4_WITHOUT := $(addprefix --ignore tests/,benchmarks connect sample_lineage e2e/test_demo.py e2e/test_cluster.py e2e/test_submitted.py)

.DEFAULT_GOAL := help
.PHONY: help setup check demo test test-slow test-nightly test-spark4 test-connect test-airflow test-fast mutants lint format types imports audit docs image image-steps accessibility bench-again bench-erase bench-estimate bench-lineage bench-month bench-objects bench-persons bench-plan bench-proof bench-query-log bench-readiness bench-requests bench-review bench-shapes bench-shred bench-storage bench-storm bench-surgery bench-sweep bench-time-left package stores record clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with everything installed, Java and Spark's jars included

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed; set PYTHON=…")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/pii-tracer doctor --fetch
	touch $(STAMP)

demo: setup ## erase a person from a realistic lakehouse, with proof
	$(BIN)/pii-tracer demo

# two processes for the slow ones: each starts engines that use both cores, and some are killed at moments of their own
test-slow test-nightly test-spark4: WORKERS := 2
# Spark in tests: over a few rows, most time goes into compiling Java and each query's generated code, and into reading
# classes; so Java compiles once, collects garbage in one thread and seldom, stages are not generated whole, plans do not
# adapt while they run, classes come from an archive. All but the nightly tests generate no code at all, which takes a
# sixth of Java's time (`spark.catalog.listTables` of Spark 3.5 then fails: tests list tables by SQL).
# `make demo`, and its test, run as users run them.
JAVA_OF_TESTS := -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC \
    -Xms1g -Xmn400m -XX:MetaspaceSize=256m -Dspark.sql.codegen.wholeStage=false -Dspark.sql.adaptive.enabled=false
test test-slow: export SPARK_SUBMIT_OPTS ?= $(JAVA_OF_TESTS) -Dspark.sql.codegen.factoryMode=NO_CODEGEN
# they find the jars that they name ready (tests/ready_submit.py); the nightly tests get them as users' sessions do
WITH_READY = env $$(test -f $(READY_STAMP) && echo SPARK_HOME=$(CURDIR)/$(READY)) $(PYTEST)
test-airflow: export SPARK_SUBMIT_OPTS ?= $(JAVA_OF_TESTS) -Dspark.sql.codegen.factoryMode=NO_CODEGEN
test-nightly: export SPARK_SUBMIT_OPTS ?= $(JAVA_OF_TESTS) -XX:SharedArchiveFile=$(CURDIR)/$(CLASSES)
test-spark4: export SPARK_SUBMIT_OPTS ?= $(JAVA_OF_TESTS) -XX:SharedArchiveFile=$(CURDIR)/$(SPARK4_CLASSES)
# tests write thousands of small files and wait for the disk at each: they lie in memory, where there is enough of it
FAST_DISK := $(shell test -w /dev/shm && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 8000000 {print "/dev/shm"}')
test test-slow test-nightly test-spark4 test-airflow: export TMPDIR := $(or $(TMPDIR),$(FAST_DISK),/tmp)

# which tests `make test` runs; `MARKS='not nightly'` adds the slow ones, in less time than one run after the other takes
MARKS ?= not slow and not nightly

# Python keeps the modules that it compiled, also where the environment forbids it, as many images do: each of some
# hundred processes would compile what it imports anew, the tests' own modules included
export PYTHONDONTWRITEBYTECODE :=

test: setup $(READY_STAMP) lint types imports ## every check and every test but the slow ones (tests/slow_tests.py)
	$(WITH_READY) -m '$(MARKS)' --ignore tests/connect

test-slow: setup $(READY_STAMP) ## the tests that take minutes each
	$(WITH_READY) -m 'slow and not nightly' --ignore tests/connect

test-nightly: setup $(CLASSES) ## dear tests: further pairs and servers, whole paths of single rules
	$(PYTEST) -m nightly --ignore tests/connect

test-connect: setup ## the whole path on a Spark Connect server
	$(BIN)/python -m pytest -p no:randomly tests/connect

test-spark4: $(SPARK4_STAMP) $(SPARK4_CLASSES) ## everything of Spark that 4.1 can do, slow tests too, in an environment of its own
	$(SPARK4)/bin/python $(SIDE_BY_SIDE) -m spark -k 'not hudi' $(SPARK4_WITHOUT) tests

test-airflow: $(AIRFLOW_STAMP) ## the Airflow operators on a real Airflow, in an environment of its own
	cd extras/airflow && $(CURDIR)/$(AIRFLOW)/bin/mypy
	cd extras/airflow && $(CURDIR)/$(AIRFLOW)/bin/python -m pytest -p no:randomly

$(AIRFLOW_STAMP): pyproject.toml constraints.txt extras/airflow/pyproject.toml extras/airflow/constraints.txt
	test -x $(AIRFLOW)/bin/python || $(PYTHON) -m venv $(AIRFLOW)
	$(AIRFLOW)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	    -c constraints.txt -c extras/airflow/constraints.txt -e '.[spark]' -e 'extras/airflow[test]'
	$(AIRFLOW)/bin/pii-tracer doctor --fetch
	touch $(AIRFLOW_STAMP)

$(CLASSES): $(STAMP)
	SPARK_SUBMIT_OPTS="$(JAVA_OF_TESTS)" $(BIN)/python -m tests.class_archive $@

$(READY_STAMP): $(STAMP) tests/ready_submit.py
	env -u SPARK_HOME SPARK_SUBMIT_OPTS="$(JAVA_OF_TESTS)" $(BIN)/python -m tests.class_archive --ready $(READY) \
	    || echo 'Spark starts without ready jars, which takes longer'

$(SPARK4_CLASSES): $(SPARK4_STAMP)
	SPARK_SUBMIT_OPTS="$(JAVA_OF_TESTS)" $(SPARK4)/bin/python -m tests.class_archive $@

# --no-deps: the tests' tools ask for Spark 3.5, and here it is replaced on purpose (docs/stack.md)
$(SPARK4_STAMP): pyproject.toml constraints.txt constraints-spark4.txt
	test -x $(SPARK4)/bin/python || $(PYTHON) -m venv $(SPARK4)
	$(SPARK4)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(SPARK4)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints-spark4.txt
	$(SPARK4)/bin/pii-tracer doctor --fetch
	touch $(SPARK4_STAMP)

package: setup ## build the wheel and the sdist, check them, and try the wheel in an empty environment, without Spark
	rm -rf dist $(PACKAGE)
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(PACKAGE)
	$(PACKAGE)/bin/python -m pip install --quiet --disable-pip-version-check twine
	$(PACKAGE)/bin/python -m twine check --strict dist/*
	rm -rf $(PACKAGE) && $(PYTHON) -m venv $(PACKAGE)
	$(PACKAGE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $$(mktemp -d) && $(CURDIR)/$(PACKAGE)/bin/pii-tracer --version && $(CURDIR)/$(PACKAGE)/bin/pii-tracer init

check: setup lint types imports ## before a commit: style, types, imports, and the quick tests near what changed
	$(BIN)/python -m pytest -p no:randomly -n 2 -m 'not spark and not e2e and not slow' $$($(BIN)/python -m tests.affected)

test-fast: setup ## the tests that need no Spark, in an order of their own each time, and more inputs for properties
	$(BIN)/python -m pytest -m 'not spark and not e2e' --hypothesis-profile many

mutants: $(MUTANTS_STAMP) ## change the rules of MODULES one by one, and see which changes no test notices
	rm -rf mutants
	$(MUTANTS)/bin/python -m tests.mutants $(MODULES)

# what is installed here, without the package itself: changed code must not be shadowed by it
$(MUTANTS_STAMP): $(STAMP)
	$(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/python -m pip install --quiet --disable-pip-version-check mutmut==3.8.1
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > $$($(MUTANTS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/installed.pth
	touch $(MUTANTS_STAMP)

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

audit: setup ## every distribution that an installation needs: its pin, its files' hashes, its licence
	$(BIN)/python -m tests.audit

docs: $(DOCS_STAMP) ## the documentation's site, in build/site; a broken link, or a load from another host, is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --site-dir $(SITE)
	$(DOCS)/bin/python -m tests.docs.built_site $(SITE)

$(DOCS_STAMP): constraints-docs.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11, 5) else "The site needs Python 3.11.5 or newer; set PYTHON=…")'
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r constraints-docs.txt
	touch $@

accessibility: setup ## what axe-core finds on every page of the demo, in Chromium; needs npm
	test -f $(AXE) || (mkdir -p $(dir $(AXE)) && npm pack --silent --pack-destination $(dir $(AXE)) axe-core@$(AXE_VERSION) && tar xzf $(dir $(AXE))axe-core-$(AXE_VERSION).tgz -C $(dir $(AXE)) --strip-components 1 package/axe.min.js)
	echo "$(AXE_SHA256)  $(AXE)" | sha256sum --check --quiet
	$(BIN)/python -m tests.accessibility.check_pages --axe $(AXE)

image: ## the container's image, with Docker
	docker build --tag pii-tracer:$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' pii_tracer/__init__.py) .

image-steps: ## the Dockerfile's steps, without a builder, in build/image (2 GB)
	rm -rf build/image
	$(PYTHON) -m tests.container.build_steps build/image

bench-again: setup ## the search after a run against a full one, and two executors against one
	$(BIN)/python -m tests.benchmarks.bench_again

bench-erase: setup ## what an erasure costs: batches, bytes written, growth with the table, the byte verifier
	$(BIN)/python -m tests.benchmarks.bench_erase

bench-estimate: setup ## an estimate of an estate of ten million files: time and memory
	$(BIN)/python -m tests.benchmarks.bench_estimate

bench-proof: setup ## how fast proofs are made and checked, against what the machine allows
	$(BIN)/python -m tests.benchmarks.bench_proof

bench-objects: setup ## a lake in S3 that did not change, searched again, and for another person: bytes downloaded and processor time
	$(BIN)/python -m tests.benchmarks.bench_known_objects

bench-persons: setup ## preparing the search for 100 to 10,000 persons: time and memory
	$(BIN)/python -m tests.benchmarks.bench_persons

bench-plan: setup ## plans for an estate of ten thousand tables: time and memory
	$(BIN)/python -m tests.benchmarks.bench_plan

bench-query-log: setup ## a query log of a million statements: statements a second and memory
	$(BIN)/python -m tests.benchmarks.bench_query_log

bench-readiness: setup ## readings of ten thousand tables from a large graph, and of a thousand real ones with a canary
	$(BIN)/python -m tests.benchmarks.bench_readiness
	$(BIN)/python -m tests.benchmarks.bench_readiness --files 1000

bench-review: setup ## a change of a dbt project of 500 models, reviewed, and twenty planted ones
	$(BIN)/python -m tests.benchmarks.bench_review

bench-requests: setup ## a list of a million requests taken into the store
	$(BIN)/python -m tests.benchmarks.bench_requests

bench-shapes: setup ## a second person on a lake that did not change, and what shapes of columns leave out
	$(BIN)/python -m tests.benchmarks.bench_shapes

bench-shred: setup ## encrypted columns against plain ones
	$(BIN)/python -m tests.benchmarks.bench_shred

bench-time-left: setup ## how right a run's estimate of the time left is, on the demo
	$(BIN)/python -m tests.benchmarks.bench_time_left

bench-lineage: setup ## the lineage graph with a million columns, and the SQL parser, beside others
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt rustworkx sqllineage openlineage-sql
	$(BIN)/python -m tests.benchmarks.bench_lineage
	$(BIN)/python -m tests.benchmarks.bench_harvest

bench-month: setup ## a month of 10,000 requests a day through the request store: which deadlines are kept, what a day costs
	$(BIN)/python -m tests.benchmarks.bench_month

bench-storage: setup ## how fast object versions are listed and deleted, beside what the server can take
	$(BIN)/python -m tests.benchmarks.bench_storage

bench-storm: setup ## many persons in one plan, from the request store to their proofs: time, memory, what is lost
	$(BIN)/python -m tests.benchmarks.bench_storm

bench-surgery: setup ## one person in a Parquet object of 1 GiB: bytes sent and time, against a whole rewrite
	$(BIN)/python -m tests.benchmarks.bench_surgery

bench-sweep: setup ## the inventory sweep beside the engine's own VACUUM on S3A with latency (MinIO: make stores)
	$(BIN)/python -m tests.benchmarks.bench_sweep

stores: ## build the S3 servers that tests and benchmarks use where they are there (needs Go; minutes)
	GOBIN=$(CURDIR)/$(VENV)/stores go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	GOBIN=$(CURDIR)/$(VENV)/stores go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
	GOBIN=$(CURDIR)/$(VENV)/stores go install github.com/minio/mc@v0.0.0-20250313080218-cf909e1063a9

record: setup ## run the sample estate's jobs with the OpenLineage listener and record their events anew
	$(BIN)/python -m sample_lineage.record

clean: ## remove what runs left behind (not the keys of real estates: only ./.pii-tracer/demo)
	rm -rf .pii-tracer/demo build dist $(PACKAGE)
