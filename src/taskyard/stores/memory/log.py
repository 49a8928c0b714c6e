"""The log of a memory yard."""

from __future__ import annotations

from taskyard.core import times
from taskyard.core.activity import Activity
from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.store_records import Trail
    from taskyard.stores.memory.tasks import MemoryTasks


class MemoryLog:
    """Reads and writes events; a cursor is the number of events before it."""

    def __init__(self, tasks: Callable[[], MemoryTasks], clock: Callable[[], int]) -> None:
        self._tasks = tasks
        self._clock = clock

    def read(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """Return events in order, and the cursor to go on from."""
        if trail.at_end or trail.newest:
            with self._tasks() as shelf:
                newest = shelf.events[-trail.limit :] if trail.newest else []
                return [dict(event) for event in newest], str(len(shelf.events))
        cursor = trail.cursor or "0"
        if not (cursor.isascii() and cursor.isdigit()):
            raise Invalid(f"not a cursor: {ascii(cursor)[:60]}", hint="give the 'cursor' of the answer before")
        since = "" if trail.since is None else times.rfc3339(trail.since)
        found: list[dict[str, Any]] = []
        with self._tasks() as shelf:
            at = min(int(cursor), len(shelf.events))
            while at < len(shelf.events) and len(found) < trail.limit:
                event = shelf.events[at]
                at += 1
                if (
                    event["at"] >= since
                    and trail.task in (None, event["task"])
                    and trail.worker in (None, event["worker"], event["by"])
                    and trail.kind in (None, event["kind"])
                    and (trail.events is None or event["event"] in trail.events)
                ):
                    found.append(dict(event))
            return found, str(at)

    def write(self, event: str, by: str, kind: str = "", more: dict[str, Any] | None = None) -> None:
        """Log an event about the yard."""
        fields = {"at": times.rfc3339(self._clock()), "event": event, "task": "", "fence": 0, "kind": kind}
        with self._tasks() as shelf:
            shelf.events.append({**fields, "worker": None, "by": by, **(more or {})})
            shelf.ring()

    def activity(self) -> Activity:
        """Return what was logged in the last hour."""
        found = Activity(self._clock())
        begin = times.rfc3339(found.now - Activity.HOUR)
        with self._tasks() as shelf:
            for event in reversed(shelf.events):
                if event["at"] < begin:
                    break
                found.count(event["event"], event["at"])
        found.complete = True
        return found
