"""Measure whether a backlog of a million slows anything: the same work at 1,000 and at 1,000,000 tasks, in turns."""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

from bench.yards import PAYLOAD, filled, process, say
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def report_postgres(_: str) -> None:
    print(f"PostgreSQL, a backlog of {LARGE:,} beside one of {SMALL:,}, each figure the larger over the smaller:")
    with Server() as server:  # without fsync, which costs the same in both yards and would hide a difference
        for kinds in (1, 50):
            small, large = (server.url(f"{name}{kinds}") for name in ("small", "large"))
            yards = (filled(small, SMALL, kinds=kinds), filled(large, LARGE, kinds=kinds))
            _compare(f"claim + done, {kinds} kinds", *_alternate(yards))
            _compare(f"claim of one kind + done, {kinds} kinds", *_alternate(yards, [f"kind{n}" for n in range(kinds)]))
            _compare(
                f"find one + get, {kinds} kinds",
                *_times(yards, lambda yard: yard.get(yard.find(state="todo", limit=1)[0].id)),
            )
            _compare(f"add, {kinds} kinds", *_times(yards, lambda yard: yard.add("kind0", PAYLOAD)))
            _compare(f"a sweep that finds nothing, {kinds} kinds", *_times(yards, lambda yard: yard.sweep()))
            for yard in yards:
                yard.close()


def _alternate(yards: tuple[taskyard.Yard, ...], kinds: Sequence[str] = ()) -> list[float]:
    """Return the seconds of one claim and done in each of these yards, measured in turns."""
    wanted = {yard.url: itertools.cycle(kinds or (None,)) for yard in yards}

    def work(yard: taskyard.Yard) -> None:
        claim = yard.claim(kinds=next(wanted[yard.url]))
        assert claim is not None
        claim.done()

    return _times(yards, work)


def _times(yards: tuple[taskyard.Yard, ...], work: Callable[[taskyard.Yard], object]) -> list[float]:
    """Return the median seconds of `work` in each of these yards, measured in turns."""
    times: list[list[float]] = [[] for _ in yards]
    for _ in range(ROUNDS):
        for yard, series in zip(yards, times, strict=True):
            begin = time.perf_counter()
            for _ in range(EACH):
                work(yard)
            series.append((time.perf_counter() - begin) / EACH)
    return [sorted(series)[len(series) // 2] for series in times]


def _compare(label: str, small: float, large: float) -> None:
    say(label, f"{large / small:.2f} times")
