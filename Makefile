# Every target sets itself up: a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Units and the contract need no disk that survives anything: in memory they take no syncs.
MEMORY := $(firstword $(wildcard /dev/shm) /tmp)
QUICK := tests/test_*.py tests/contract tests/worker tests/proof

.PHONY: help setup quick test proof check demo bench clean

help:
	@echo "make demo   a crew on one directory; one is killed, one is stopped, nothing is lost"
	@echo "make quick  units, and the contract in memory and on a directory"
	@echo "make test   every test, but for those that take minutes each"
	@echo "make proof  those: all orders of calls, kills at every call, the version before"
	@echo "make check  lint and strict types"
	@echo "make bench  what the operations cost on this machine"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

quick: setup
	@folder=$$(mktemp -d $(MEMORY)/taskyard-quick-XXXXXX); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/python -m pytest -m 'not proof' --stores memory,directory --basetemp "$$folder/tests" $(QUICK)

test: setup
	$(BIN)/python -m pytest -m 'not proof'

proof: setup
	$(BIN)/python -m pytest -m proof

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: setup
	$(BIN)/taskyard demo

bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
