"""Compare tasks that use resources, none of which conflict, with tasks that use none: eight workers, tasks of several lengths."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import taskyard
from bench.yards import environment, say
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS, ROUNDS = 8, 3
LENGTHS = {"empty": (0.0, 2000), "1 ms": (0.001, 2000), "5 ms": (0.005, 1200)}


def work(url: str, seconds: float) -> None:
    """Work until nothing is ready; print the first and the last moment, and how many were done."""
    with taskyard.open(url) as yard:
        print("ready", flush=True)
        sys.stdin.readline()
        begin, number = time.monotonic(), 0
        while (claim := yard.claim()) is not None:
            time.sleep(seconds)
            claim.done()
            number += 1
        print(json.dumps([begin, time.monotonic(), number]), flush=True)


def report(folder: str) -> None:
    print(f"Tasks a second of {WORKERS} workers, with two resources each and with none, the middle of {ROUNDS} rounds:")
    _compare("directory", lambda name: f"{folder}/{name}")
    with Server(fsync="on", full_page_writes="on", synchronous_commit="on") as server:
        _compare("postgresql", server.url)


def _compare(store: str, place: Callable[[str], str]) -> None:
    for length, (seconds, tasks) in LENGTHS.items():
        rates: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(ROUNDS):  # in turns: the speed of a shared machine changes from one minute to the next
            for uses in (False, True):
                url = place(f"uses-{seconds:g}-{uses}-{turn}")
                with taskyard.init(url) as yard:
                    yard.add_many(
                        {"kind": "build", "uses": [f"file{n}", f"src/{n}/"] if uses else []} for n in range(tasks)
                    )
                rates[uses].append(_rate(url, seconds, tasks))
        without, with_some = median(rates[False]), median(rates[True])
        say(f"{store}, {length}", f"{with_some:.0f} with, {without:.0f} without: {with_some / without:.2f}")


def _rate(url: str, seconds: float, tasks: int) -> float:
    """Return the tasks a second of the whole crew, from the first start to the last end."""
    command = [sys.executable, "-c", f"from bench.uses import work; work({url!r}, {seconds})"]
    crew = [
        subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(WORKERS)
    ]
    for member in crew:
        assert member.stdout is not None
        assert member.stdout.readline() == "ready\n"
    for member in crew:
        assert member.stdin is not None
        member.stdin.write("\n")
        member.stdin.flush()
    ends = [json.loads(member.communicate()[0]) for member in crew]
    assert sum(number for _, _, number in ends) == tasks
    seconds_taken: float = max(end for _, end, _ in ends) - min(begin for begin, _, _ in ends)
    return tasks / seconds_taken
