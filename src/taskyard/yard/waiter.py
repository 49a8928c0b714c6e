"""Waiting for a change: an idle waiter costs nothing, wakes at once, and never spins.

After a fruitless look comes a pause in proportion to the look's cost. So a waiter takes a small share of a core, no matter
how much others do. The pause is random, so that waiters which woke together do not look together again.
"""

from __future__ import annotations

import time

from taskyard.core import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.store_records import Want
    from taskyard.store import Wakeup

_SHARE = 30  # a pause is this many times as long as the look before it: 3 % of a core
PAUSE = 0.25  # seconds, at most


class Waiting:
    """Make it before the first look, and call `nap` after each fruitless look."""

    __slots__ = ("_awake", "_end", "_heard", "_most", "_stopped", "_wakeup", "_want")

    def __init__(
        self,
        wakeup: Wakeup,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        pause: float = PAUSE,
        want: Want | None = None,
    ) -> None:
        self._wakeup = wakeup
        self._stopped = stopped
        self._most = pause
        self._want = want
        self._heard = wakeup.listen(want)
        self._awake = time.monotonic()
        self._end = self._awake + (float("inf") if seconds is None else seconds)

    def is_stopped(self) -> bool:
        """Whether the caller asked to stop."""
        return self._stopped is not None and self._stopped()

    def is_over(self) -> bool:
        """Whether the time is up: call this before a look, which is then the last."""
        return time.monotonic() >= self._end

    def nap(self, most: float | None = None) -> None:
        """Sleep until something may have changed, for at most `most` seconds, or until the time is up."""
        now = time.monotonic()
        pause = min((now - self._awake) * _SHARE, self._most) * (0.5 + ids.chance(8) / 256)
        floor = self._wakeup.floor()
        left = min(floor * (0.75 + ids.chance(8) / 1024), self._end - now, floor if most is None else most)
        heard = self._wakeup.wait(max(0.0, left), self._heard, self._want)
        rest = min(now + pause, self._end) - time.monotonic()
        if heard != self._heard and rest > 0 and not self._wakeup.is_hinted() and not self.is_stopped():
            time.sleep(rest)
        self._heard = heard
        self._awake = time.monotonic()

    def renew(self, seconds: float) -> None:
        """Wait for `seconds` from now on."""
        self._end = time.monotonic() + seconds
