"""The last hour in figures: how many tasks came and went in each minute, and how long they took. No I/O."""

from __future__ import annotations

from taskyard.core import ids, times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

STEP = 60_000  # milliseconds of one bucket
BUCKETS = 60
COUNTED = ("added", "claimed", "done", "failed", "reaped")
_CLOSING = ("done", "cancelled")  # and a fail that is final: each takes one from the backlog
_REOPENING = ("added", "retried")


class Buckets:
    """The counts and the times of each minute, the oldest first."""

    def __init__(self, now: int) -> None:
        self._begin = now - STEP * BUCKETS
        self.counts = {name: [0] * BUCKETS for name in COUNTED}
        self._opened = [0] * BUCKETS
        self._waits: list[list[int]] = [[] for _ in range(BUCKETS)]
        self._runs: list[list[int]] = [[] for _ in range(BUCKETS)]
        self._claimed: dict[str, int] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Count one event; they come oldest first."""
        at = times.moment(event["at"], "at")
        bucket = min((at - self._begin) // STEP, BUCKETS - 1)  # another thread may have logged a moment after `now`
        name, task = event["event"], str(event["task"])
        if name == "claimed":
            self._claimed[task] = at
        if bucket < 0:
            return
        if name in self.counts:
            self.counts[name][bucket] += 1
        if name in _REOPENING:
            self._opened[bucket] += 1
        elif name in _CLOSING or (name == "failed" and event.get("final")):
            self._opened[bucket] -= 1
        if name == "claimed" and ids.is_id(task):
            self._waits[bucket].append(max(0, at - ids.created(task)))
        if name == "done" and task in self._claimed:
            self._runs[bucket].append(at - self._claimed.pop(task))

    def backlog(self, open_now: int) -> list[int]:
        """Return how many tasks were open at the end of each minute, by going back from how many are open now."""
        found, left = [0] * BUCKETS, open_now
        for bucket in range(BUCKETS - 1, -1, -1):
            found[bucket] = max(0, left)
            left -= self._opened[bucket]
        return found

    def waits(self) -> list[float | None]:
        """Return the median seconds from add to claim of each minute's claims."""
        return list(map(_median, self._waits))

    def runs(self) -> list[float | None]:
        """Return the median seconds from claim to done of each minute's dones."""
        return list(map(_median, self._runs))


def described(events: Iterable[Mapping[str, Any]], now: int, open_now: int, since: str) -> dict[str, Any]:
    """Return the last hour as plain data; from `since` on, all events are counted."""
    buckets = Buckets(now)
    for event in events:
        buckets.take(event)
    return {
        "now": times.rfc3339(now),
        "begin": times.rfc3339(now - STEP * BUCKETS),
        "step": STEP / 1000,
        "since": since,
        "counts": buckets.counts,
        "backlog": buckets.backlog(open_now),
        "wait": buckets.waits(),
        "run": buckets.runs(),
    }


def _median(values: list[int]) -> float | None:
    return None if not values else sorted(values)[len(values) // 2] / 1000
