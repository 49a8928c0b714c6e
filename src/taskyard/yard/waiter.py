"""How to wait for something: idle for free, awake at once, and never busy with what is of no use.

A look in vain is followed by a pause in proportion to what it cost, so that a waiter takes a small share of a core however
much others do; and the pause is at random, so that many who were woken together don't look together again.
"""

from __future__ import annotations

import time

from taskyard.core import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.store import Wakeup

FLOOR = 30.0  # seconds after which one looks even if nobody rang: a process may have been killed before it could ring
_SHARE = 30  # a pause is so many times as long as the look before it: 3 % of a core
PAUSE = 0.25  # seconds, at the most


class Waiting:
    """Made before the first look, called for a `nap` after each look in vain."""

    __slots__ = ("_awake", "_end", "_heard", "_most", "_stopped", "_wakeup")

    def __init__(
        self,
        wakeup: Wakeup,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        pause: float = PAUSE,
    ) -> None:
        self._wakeup = wakeup
        self._stopped = stopped
        self._most = pause
        self._heard = wakeup.listen()
        self._awake = time.monotonic()
        self._end = self._awake + (float("inf") if seconds is None else seconds)

    def is_stopped(self) -> bool:
        """Whether the caller asked to stop."""
        return self._stopped is not None and self._stopped()

    def is_over(self) -> bool:
        """Whether the time is up: ask before a look, which is then the last."""
        return time.monotonic() >= self._end

    def nap(self, most: float | None = None) -> None:
        """Sleep until something may have changed, for `most` seconds, or until the time is up."""
        now = time.monotonic()
        pause = min((now - self._awake) * _SHARE, self._most) * (0.5 + ids.chance(8) / 256)
        left = min(FLOOR * (0.75 + ids.chance(8) / 1024), self._end - now, FLOOR if most is None else most)
        heard = self._wakeup.wait(max(0.0, left), self._heard)
        rest = min(now + pause, self._end) - time.monotonic()
        if heard != self._heard and rest > 0 and not self.is_stopped():
            time.sleep(rest)
        self._heard = heard
        self._awake = time.monotonic()

    def renew(self, seconds: float) -> None:
        """Wait for that many seconds from now on."""
        self._end = time.monotonic() + seconds
