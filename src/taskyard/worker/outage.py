"""A yard that cannot be reached: report it once, retry with longer and longer pauses, and report once when it is back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from taskyard.core import ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.errors import Unavailable

FIRST_PAUSE, LONGEST_PAUSE = (
    0.25,
    4.0,
)  # seconds: a yard that is back is claimed from again within ten, after any outage


class Trouble:
    """The state of an outage, shared by all slots of a worker."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._said: str | None = None
        self._passed: set[str] = set()
        self._pause = FIRST_PAUSE

    def met(self, error: Unavailable) -> float:
        """Report this error unless it was reported; return seconds to wait before the next try."""
        with self._lock:
            if error.message != self._said:
                self._said = error.message
                self._tell(f"{error.message}; trying again until it is back")
            pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return pause * (0.75 + ids.chance(8) / 512)

    def passed(self, unusable: list[str]) -> None:
        """Report once each thing that claims pass over."""
        for thing in unusable:
            if thing not in self._passed:
                self._passed.add(thing)
                self._tell(f"claims pass over {thing}; 'taskyard fsck' tells more")

    def over(self) -> None:
        """Report that the yard is back, if it was reported as unreachable."""
        if self._said is None:
            return
        with self._lock:
            if self._said is not None:
                self._tell("the yard is back")
            self._said, self._pause = None, FIRST_PAUSE
