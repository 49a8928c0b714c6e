"""Yards to measure on, and time that a noisy machine cannot spoil: the best of several, compared within one run."""

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
    """A folder beside the project, on the disk that people work on; TASKYARD_BENCH names another."""
    folder = tempfile.mkdtemp(prefix="taskyard-bench-", dir=os.environ.get("TASKYARD_BENCH", os.getcwd()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def filled(path: str, tasks: int, durability: str = "fast", kinds: int = 1) -> taskyard.Yard:
    """A yard with so many tasks spread over so many kinds."""
    yard = taskyard.init(path, worker="bench", durability=durability)
    for start in range(0, tasks, 50_000):
        count = min(50_000, tasks - start)
        yard.add_many({"kind": f"kind{number % kinds}", "data": PAYLOAD} for number in range(start, start + count))
    return yard


def best(work: Callable[[], None], rounds: int) -> float:
    """Seconds that the work takes when nothing else is in its way."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def environment() -> dict[str, str]:
    """The environment of a user's shell: modules stay compiled from one process to the next."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def process(*command: str, rounds: int = 25) -> float:
    """Seconds for a whole process of this interpreter, with its modules compiled."""

    def run() -> None:
        subprocess.run([sys.executable, *command], env=environment(), stdout=subprocess.DEVNULL, check=True)

    run()
    return best(run, rounds)


def say(label: str, figure: str) -> None:
    """One line of the report."""
    print(f"  {label:<58} {figure:>22}", flush=True)
