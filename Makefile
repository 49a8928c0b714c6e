# Every target sets itself up: a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Many containers set this: every process of a run would compile all tests, and every command all of Taskyard.
export PYTHONDONTWRITEBYTECODE =

# Tests kill processes and never the machine: in memory, syncs cost nothing, and servers start sooner. 'make disk' tries the
# contract on the disk.
IN_MEMORY = folder=$$(mktemp -d "$$(sh tests/memory.sh)/taskyard-$@-XXXXXX"); trap 'rm -rf "$$folder"' EXIT; trap 'exit 130' INT TERM; \
	chmod 755 "$$folder"; TMPDIR=$$folder \
	$(BIN)/python $(if $(filter again,$@),tests/again.py,-m pytest) --basetemp "$$folder/tests"
QUICK := tests/test_*.py tests/contract tests/worker tests/proof

.PHONY: help setup quick test test-containers proof disk again check demo bench clean

help:
	@echo "make demo   a crew on one directory; one is killed, one is stopped, nothing is lost"
	@echo "make quick  units, and the contract in memory and on a directory"
	@echo "make test   every test, but for those that take minutes each"
	@echo "make test-containers  the image and the compose files for real; as root"
	@echo "make proof  those: all orders of calls, kills at every call, the version before"
	@echo "make disk   the contract on this disk, where syncs take their time"
	@echo "make again  the few tests that failed last, once more and by themselves"
	@echo "make check  lint and strict types"
	@echo "make bench  what the operations cost on this machine"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@echo "Building $(VENV) with all that the tests need: a minute or two, and only once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

quick: setup
	@$(IN_MEMORY) -m 'not proof' --stores memory,directory $(QUICK)

test: setup
	@$(IN_MEMORY) -m 'not proof'

# Not a part of 'test': it needs root and packages of the system, and takes minutes.
test-containers: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,containers]'
	$(BIN)/python -m tests.containers

proof: setup
	@$(IN_MEMORY) -m proof

disk: setup
	$(BIN)/python -m pytest -m 'not proof' --stores directory tests/contract

again: setup
	@$(IN_MEMORY)

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
