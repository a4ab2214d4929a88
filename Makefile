# Each target sets up what it needs. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
PORT ?= 8000
VENV ?= .venv
BIN := $(VENV)/bin
# A process per core, each with a database of its own.
PARALLEL ?= --numprocesses=auto --dist=loadgroup

.PHONY: help demo test test-all chaos bench conformance clients lint docs clean

help:
	@echo "make demo         set up and serve the example project on PORT ($(PORT))"
	@echo "make test         the tests that need Python alone, but for the slow ones; two minutes"
	@echo "make test-all     everything that CI runs; needs PostgreSQL, MariaDB, Redis, Node.js"
	@echo "make chaos        kill and break what can be, and count what is lost; half an hour;"
	@echo "                  needs PostgreSQL, MariaDB and Redis; CHAOS=--short takes three minutes"
	@echo "make bench        what a request costs, here and elsewhere; half an hour; needs the same and"
	@echo "                  Node.js, and two cores with nothing else to do; BENCH=--short takes two minutes"
	@echo "make conformance  the official conformance suite; needs Node.js"
	@echo "make clients      SDKs of four generations, FastMCP and frameworks, each installed for itself;"
	@echo "                  needs a package index"
	@echo "make lint         ruff, mypy, import-linter"
	@echo "make docs         build the documentation"

# A stamp per set of dependency groups, so that a target installs only what it needs, once.
$(VENV)/%.stamp: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -q -e . $(addprefix --group ,$(subst +, ,$*))
	@touch $@

demo: $(VENV)/demo.stamp
	PORT=$(PORT) $(BIN)/python manage.py demo

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest $(PARALLEL) -m "not node and not browser and not workers and not slow" tests
	$(BIN)/python -m pytest $(PARALLEL) --ds=example_project.settings -m "not slow" tests/example

test-all:
	bash .ci/run

chaos: $(VENV)/test+services.stamp
	$(BIN)/python -m tests.chaos.run $(CHAOS)

bench: $(VENV)/test+bench.stamp
	$(BIN)/python -m benchmarks $(BENCH)

conformance: $(VENV)/test.stamp
	$(BIN)/python tests/conformance/run.py
	$(BIN)/python tests/conformance/run_client.py

clients: $(VENV)/test+clients.stamp
	$(BIN)/python -m pytest $(PARALLEL) tests/clients/test_isolated.py

lint: $(VENV)/test+services+lint.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy django_mcp
	$(BIN)/mypy --config-file example_project/mypy.ini example_project manage.py
	$(BIN)/lint-imports

docs: $(VENV)/docs.stamp
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site build dist
