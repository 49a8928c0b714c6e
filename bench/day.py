"""Measure a day: many tasks in a yard that keeps only the newest. A task must cost as much at the end as at the start."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import taskyard
from bench.yards import PAYLOAD, say

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS = int(os.environ.get("TASKYARD_BENCH_DAY", "200000"))
KEPT = 5000  # ended tasks that the yard keeps
ROUND = 2000
TENTHS = 10


class Tenth:
    """The cost of one tenth of the day, and the size of the yard at its end."""

    def __init__(self, cost: float, rounds: list[float], files: int, folders: int, largest: int, events: int) -> None:
        self.cost = cost
        self.rounds = rounds  # processor time of a task, on which other load has less influence than on elapsed time
        self.busy = sum(rounds) / len(rounds)
        self.files = files
        self.folders = folders
        self.largest = largest
        self.events = events


def report(folder: str) -> None:
    print(f"A day's life: {TASKS:,} tasks added, claimed and done with a result, {KEPT:,} of them kept:")
    path = f"{folder}/day"
    taskyard.init(path, durability="fast").close()
    _keep(path, KEPT)
    tenths = list(_day(path))
    for number, tenth in enumerate(tenths, 1):
        say(
            f"tenth {number}: {tenth.cost * 1e6:,.0f} us a task, {tenth.busy * 1e6:,.0f} of the processor",
            f"{tenth.files:,} + {tenth.folders:,} inodes",
        )
        say(f"  largest directory {tenth.largest:,} B", f"log {tenth.events / 2**20:.1f} MiB")
    _compare(tenths)


def _compare(tenths: list[Tenth]) -> None:
    # The first tenth that begins with as many ended tasks as the yard keeps.
    first = next((tenth for number, tenth in enumerate(tenths) if number * TASKS // TENTHS >= KEPT), tenths[-1])
    last = tenths[-1]
    say("cost per task, last tenth over first full tenth", f"{last.cost / first.cost:.2f} times")
    say("processor time per task, the same", f"{last.busy / first.busy:.2f} times")
    alone = min(tenths[0].rounds[: KEPT // ROUND])  # rounds before the first task was pruned
    say("processor time per task, last tenth over before retention", f"{last.busy / alone:.2f} times")
    say("files and folders, the same", f"{(last.files + last.folders) / (first.files + first.folders):.2f} times")
    say("largest directory, the same", f"{last.largest / first.largest:.2f} times")
    say("log, the same", f"{last.events / first.events:.2f} times")


def _keep(path: str, count: int) -> None:
    settings = f"{path}/yard.json"
    with open(settings, encoding="utf-8") as file:
        content = json.load(file)
    content["settings"]["retention_count"] = count
    with open(settings, "w", encoding="utf-8") as file:
        json.dump(content, file)


def _day(path: str) -> Iterator[Tenth]:
    yard = taskyard.open(path, worker="bench")
    each = TASKS // TENTHS
    for _ in range(TENTHS):
        spent, rounds, left = 0.0, [], each
        while left:
            count = min(ROUND, left)
            left -= count
            begin, began = time.perf_counter(), time.process_time()
            yard.add_many([{"kind": "kind0", "data": PAYLOAD}] * count)
            for _ in range(count):
                claim = yard.claim()
                assert claim is not None
                claim.done({"ok": True})
            yard.sweep()  # a real day has a sweep every five seconds; this one lasts minutes
            spent += time.perf_counter() - begin
            rounds.append((time.process_time() - began) / count)
        yield _look(path, spent / each, rounds)
    yard.close()


def _look(path: str, cost: float, rounds: list[float]) -> Tenth:
    files = folders = largest = events = 0
    for folder, inner, names in os.walk(path):
        if folder == path:
            inner.remove("archive")
        folders += len(inner)
        files += len(names)
        largest = max(largest, os.stat(folder).st_size)
        if folder == f"{path}/events":
            events = sum(os.stat(f"{folder}/{name}").st_size for name in names)
    return Tenth(cost, rounds, files, folders, largest, events)
