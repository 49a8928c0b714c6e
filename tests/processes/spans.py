"""When tasks were held by workers, as the workers wrote it down, and how many at once or in a minute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Span = tuple[int, int, str]
"""Nanoseconds of the machine's clock at which the claim surely held: from, to; and the task."""


def surely_held(path: str | Path, killed: Mapping[int, int], most: float) -> list[Span]:
    """Read what workers wrote. A killed worker held its last task until its kill, and no longer than `most` seconds.

    A claim that was lost before its done counts for nothing: nobody knows when it was lost.
    """
    begun: dict[str, tuple[int, str, int]] = {}
    spans: list[Span] = []
    for line in Path(path).read_text().splitlines():
        what, handle, task, pid, at = json.loads(line)
        if what == "begin":
            begun[handle] = (at, task, pid)
        else:
            spans.append((begun.pop(handle)[0], at, task))
    last: dict[int, tuple[int, str]] = {}
    for at, task, pid in begun.values():
        last[pid] = max(last.get(pid, (0, "")), (at, task))
    for pid, (at, task) in last.items():
        if pid in killed:
            spans.append((at, min(killed[pid], at + round(most * 1e9)), task))
    return spans


def most_at_once(spans: Iterable[tuple[int, int, str]]) -> int:
    """How many of the spans overlap at some moment; one that ends when another begins does not."""
    changes = sorted(change for begin, end, _ in spans if begin < end for change in ((begin, 1), (end, -1)))
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def most_within(times: Iterable[float], window: float) -> int:
    """How many of these moments are in one window, both of its ends included."""
    ordered, first, most = sorted(times), 0, 0
    for last, time in enumerate(ordered):
        while time - ordered[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most


def used_share(spans: Iterable[tuple[float, float]], limit: int) -> float:
    """Which share of `limit` places was held, from the first begin to the last: from then on nothing was left to begin."""
    known = list(spans)
    first, last = min(begin for begin, _ in known), max(begin for begin, _ in known)
    return sum(min(end, last) - begin for begin, end in known) / (limit * (last - first))
