"""Brings the yard's events to the supervisor's loop, by a thread that sleeps until something happens."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from taskyard import opening
from taskyard.core.errors import TaskyardError

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE = 1.0  # seconds before an unreachable yard is tried again


class EventFeed:
    """Events of the yard from now on."""

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        self._yard = opening.open(url)
        self._cursor = self._yard.log_end()  # here, and not in the thread: no event is missed
        self._wake = wake
        self._pages: SimpleQueue[list[dict[str, Any]]] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="crew-events", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                for page in self._yard.follow(cursor=self._cursor, until=self._stopping.is_set):
                    self._cursor = page.cursor
                    self._pages.put(list(page))
                    self._wake()
            except TaskyardError:
                self._stopping.wait(_PAUSE)

    def take(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        found: list[dict[str, Any]] = []
        while not self._pages.empty():
            found += self._pages.get()
        return found

    def finish(self) -> None:
        """Stop the thread; the events up to now can still be taken."""
        self._stopping.set()
        self._yard.wake()
        self._thread.join()
        try:
            while page := self._yard.events(cursor=self._cursor):
                self._cursor = page.cursor
                self._pages.put(list(page))
        except TaskyardError:
            pass  # the yard is unreachable
        self._yard.close()
