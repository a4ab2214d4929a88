# Each target sets up what it needs. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
PORT ?= 8000
VENV ?= .venv
# What `make mutants` plants: how many bugs, which of them, and in which packages.
MUTANTS ?= 200
SEED ?= 1
PACKAGES ?=
BIN := $(VENV)/bin
# A process per core, each with a database of its own.
PARALLEL ?= --numprocesses=auto --dist=loadgroup
# What needs nothing but Python.
QUIET := -m "not node and not browser and not workers and not sites"

.DEFAULT_GOAL := help
.PHONY: help demo test test-lowest test-package test-all clients conformance chaos bench mutants lint format docs pictures dist clean

help: ## show this
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 } \
		/^## / { printf "%18s %s\n", "", substr($$0, 4) }' $(MAKEFILE_LIST)

# A stamp per set of dependency groups, so that a target installs only what it needs, once.
$(VENV)/%.stamp: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -q -e . $(addprefix --group ,$(subst +, ,$*))
	@touch $@

demo: $(VENV)/demo.stamp ## set up and serve the example project on PORT
	PORT=$(PORT) $(BIN)/python manage.py demo

test: $(VENV)/test.stamp ## the tests that need Python alone, but for the slow ones; two to three minutes on two cores
	$(BIN)/python -m pytest $(PARALLEL) -m "not node and not browser and not workers and not slow and not sites" tests
	$(BIN)/python -m pytest $(PARALLEL) --ds=example_project.settings -m "not slow" tests/example

test-lowest: ## the same and the slow ones, with the lowest versions that are allowed
	.ci/lowest $(PYTHON) .venv-lowest
	.venv-lowest/bin/python -m pytest $(PARALLEL) $(QUIET) tests

test-package: ## build sdist and wheel, and test what they install
	.ci/package $(PYTHON)

test-all: ## everything that CI runs
## needs PostgreSQL, MariaDB, Redis, Node.js, Chromium
	bash .ci/run

clients: $(VENV)/test+clients.stamp ## SDKs of four generations, FastMCP and frameworks, each installed for itself
## needs a package index
	$(BIN)/python -m pytest $(PARALLEL) tests/clients/test_isolated.py

conformance: $(VENV)/test.stamp ## the official conformance suite
## needs Node.js
	$(BIN)/python tests/conformance/run.py
	$(BIN)/python tests/conformance/run_client.py

chaos: $(VENV)/test+services.stamp ## kill and break what can be, and count what is lost; half an hour
## needs PostgreSQL, MariaDB and Redis; CHAOS=--short takes three minutes
	$(BIN)/python -m tests.chaos.run $(CHAOS)

bench: $(VENV)/test+bench.stamp ## what a request costs, here and elsewhere; half an hour
## needs the same, Node.js, and two cores with nothing else to do; BENCH=--short takes two minutes
	$(BIN)/python -m benchmarks $(BENCH)

mutants: $(VENV)/test+mutants.stamp ## plant MUTANTS small bugs, as SEED has it, and count those that tests notice; hours
 ## PACKAGES="http running" chooses where
	nice $(BIN)/python -m tests.mutants.run --mutants=$(MUTANTS) --seed=$(SEED) $(PACKAGES)

lint: $(VENV)/test+services+lint.stamp ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy django_mcp
	$(BIN)/mypy --config-file example_project/mypy.ini example_project manage.py
	$(BIN)/lint-imports

format: $(VENV)/test+services+lint.stamp ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs.stamp ## build the documentation as a site, with every warning an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs site
	@echo "The site is at site/index.html."

pictures: $(VENV)/test+browser.stamp ## make the pictures of pages that the documentation shows
## needs Chromium
	$(BIN)/python -m tests.browser.pictures

dist: $(VENV)/release.stamp ## build and check what is published
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

clean: ## remove what the targets have made
	rm -rf $(VENV) .venv-lowest .venv-highest site build dist
