"""Does a backlog of a million make anything slower? The same work at 1,000 and at 1,000,000 tasks, in turns."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench.yards import filled, process, say

if TYPE_CHECKING:
    import taskyard

SMALL = 1000
LARGE = int(os.environ.get("TASKYARD_BENCH_BACKLOG", "1000000"))
ROUNDS = 12
EACH = 40


def report(folder: str) -> None:
    print(f"A backlog of {LARGE:,} beside one of {SMALL:,}, each figure the larger over the smaller:")
    for kinds in (1, 50):
        small = filled(f"{folder}/small-{kinds}", SMALL, kinds=kinds)
        begin = time.perf_counter()
        large = filled(f"{folder}/large-{kinds}", LARGE, kinds=kinds)
        say(f"filling it, {kinds} kinds", f"{LARGE / (time.perf_counter() - begin):,.0f}/s")
        yards = (small, large)
        _compare(f"claim + done in one process, {kinds} kinds", *_alternate(yards))
        ids = [yard.find(state="todo", limit=1)[0].id for yard in yards]
        for label, words in (("show ID", ["show"]), ("claim", ["claim"])):
            times = []
            for yard, id in zip(yards, ids, strict=True):
                last = [id] if label == "show ID" else []
                times.append(process("-m", "taskyard", "--yard", yard.url, "--json", *words, *last, rounds=20))
            _compare(f"taskyard {label} as a whole process, {kinds} kinds", *times)


def _alternate(yards: tuple[taskyard.Yard, ...]) -> list[float]:
    """Seconds for one claim and done in each of these yards, taken in turns."""
    times: list[list[float]] = [[] for _ in yards]
    for _ in range(ROUNDS):
        for yard, series in zip(yards, times, strict=True):
            begin = time.perf_counter()
            for _ in range(EACH):
                claim = yard.claim()
                assert claim is not None
                claim.done()
            series.append((time.perf_counter() - begin) / EACH)
    return [sorted(series)[len(series) // 2] for series in times]


def _compare(label: str, small: float, large: float) -> None:
    say(label, f"{large / small:.2f} times")
