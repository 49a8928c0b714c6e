"""What happens in the yard, brought to the supervisor's loop by a thread that sleeps until something does."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from taskyard import opening
from taskyard.core.errors import TaskyardError

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE = 1.0  # seconds before a yard that is away is tried again


class EventFeed:
    """Events of the yard from now on."""

    def __init__(self, url: str, ring: Callable[[], None]) -> None:
        self._yard = opening.open(url)
        self._cursor = self._yard.log_end()  # now, and not when the thread has got going: no event is missed
        self._ring = ring
        self._pages: SimpleQueue[list[dict[str, Any]]] = SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="news", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                for page in self._yard.follow(cursor=self._cursor, until=self._over.is_set):
                    self._cursor = page.cursor
                    self._pages.put(list(page))
                    self._ring()
            except TaskyardError:
                self._over.wait(_PAUSE)

    def take(self) -> list[dict[str, Any]]:
        """What has happened since it was last asked."""
        found: list[dict[str, Any]] = []
        while not self._pages.empty():
            found += self._pages.get()
        return found

    def finish(self) -> None:
        """Listen no more; what has happened up to now can still be taken."""
        self._over.set()
        self._yard.wake()
        self._thread.join()
        try:
            while page := self._yard.events(cursor=self._cursor):
                self._cursor = page.cursor
                self._pages.put(list(page))
        except TaskyardError:
            pass  # a yard that is away has no last word
        self._yard.close()
