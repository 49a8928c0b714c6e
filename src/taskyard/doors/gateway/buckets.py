"""How many requests each asker may send: a bucket of them for each, which fills again at a steady rate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from taskyard.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 5  # seconds' worth of requests that may come at once
_MOST = 10_000  # askers that are remembered


class TooMany(Unavailable):
    """There are too many requests."""


class Buckets:
    """A token bucket for each asker; a rate of 0 is without limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._size = max(1.0, rate * _SECONDS)
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when; the one that asked last comes last

    def take(self, asker: str) -> None:
        """Count one request; raise `TooMany` if the asker has none left."""
        if not self._rate:
            return
        now = self._clock()
        left, at = self._left.pop(asker, (self._size, now))
        left = min(self._size, left + (now - at) * self._rate)
        self._left[asker] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._left) > _MOST:
            del self._left[next(iter(self._left))]  # the one that has been silent for longest
        if left < 1:
            raise TooMany(
                f"more than {self._rate:g} requests a second came with this token, or from this address",
                hint="try again in a second, and wait with --wait in place of asking often",
            )
