"""Yards to measure on, and times that other load changes little: the best of several rounds of one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAYLOAD = {"text": "x" * 200}


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a temporary folder in the current directory, on the disk that people work on; $TASKYARD_BENCH names another."""
    folder = tempfile.mkdtemp(prefix="taskyard-bench-", dir=os.environ.get("TASKYARD_BENCH", os.getcwd()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def filled(path: str, tasks: int, durability: str = "fast", kinds: int = 1) -> taskyard.Yard:
    """Return a yard with `tasks` tasks of `kinds` kinds."""
    yard = taskyard.init(path, worker="bench", durability=durability)
    for start in range(0, tasks, 50_000):
        count = min(50_000, tasks - start)
        yard.add_many({"kind": f"kind{number % kinds}", "data": PAYLOAD} for number in range(start, start + count))
    return yard


def best(work: Callable[[], None], rounds: int) -> float:
    """Return the seconds of the fastest of `rounds` runs: other load can only make them slower."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def environment() -> dict[str, str]:
    """Return the environment of a user's shell, in which Python caches compiled modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def process(*command: str, rounds: int = 25) -> float:
    """Return the seconds of a whole process of this interpreter, with its modules compiled."""

    def run() -> None:
        subprocess.run([sys.executable, *command], env=environment(), stdout=subprocess.DEVNULL, check=True)

    run()
    return best(run, rounds)


def say(label: str, figure: str) -> None:
    """Print one line of the report."""
    print(f"  {label:<58} {figure:>22}", flush=True)
