"""Which orchestrator leads a memory yard."""

from __future__ import annotations

import time

from taskyard.core.store_records import Lead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.memory.tasks import MemoryTasks


class MemoryLeadership:
    """Hands out the leadership of one yard."""

    def __init__(self, tasks: Callable[[], MemoryTasks]) -> None:
        self._tasks = tasks

    def lead(self, worker: str, incarnation: str, seconds: float) -> Lead:
        """Lead if this incarnation does already, or no other has renewed the leadership for `seconds`; return who leads."""
        now = time.monotonic()
        with self._tasks() as shelf:
            held = shelf.leader
            if held is not None and held[1] != incarnation and now - held[2] <= seconds:
                return Lead(held[0], shelf.terms, False)
            shelf.terms += held is None or held[1] != incarnation
            shelf.leader = (worker, incarnation, now)
            return Lead(worker, shelf.terms, True)

    def resign(self, incarnation: str) -> bool:
        """Whether this incarnation led, and does so no more."""
        with self._tasks() as shelf:
            led = shelf.leader is not None and shelf.leader[1] == incarnation
            if led:
                shelf.leader = None
            return led
