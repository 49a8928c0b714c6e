"""Waiting on a yard behind a gateway: one request that the gateway answers when something may have changed."""

from __future__ import annotations

import os
import time

from taskyard.core import forks, ids
from taskyard.core.errors import Unavailable
from taskyard.remote.http import Woken
from taskyard.remote.wire import LONGEST_POLL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE = 0.25  # seconds, at most: as the yard's own waiters pause after a look in vain
_SHARE = 30


class Bell:
    """Ends every wait of this process on one yard; a signal handler may ring it."""

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Make a new pipe in a forked child at the first use."""
        self._pipe = None

    def descriptor(self) -> int:
        """Return what becomes readable when the bell is rung."""
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
        return self._pipe[0]

    def ring(self) -> None:
        """End the waits that there are now, or the next one."""
        if self._pipe is not None:
            try:
                os.write(self._pipe[1], b"!")
            except BlockingIOError:
                return  # full of earlier rings

    def heard(self) -> None:
        """Take back what was rung."""
        try:
            os.read(self.descriptor(), 4096)
        except BlockingIOError:
            return  # another thread has read it

    def close(self) -> None:
        """Close the pipe."""
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def __del__(self) -> None:
        self.close()


class RemoteWaiter:
    """Make it before the first look, and call `nap` after each look in vain."""

    def __init__(
        self,
        ask: Callable[[str | None, float], str],
        bell: Bell,
        seconds: float | None,
        stopped: Callable[[], bool] | None,
    ) -> None:
        self._ask = ask
        self._bell = bell
        bell.descriptor()
        self._stopped = stopped
        self._end = time.monotonic() + (float("inf") if seconds is None else seconds)
        self._seen: str | None = ask(None, 0.0)
        self._awake = time.monotonic()

    def is_stopped(self) -> bool:
        """Whether the caller asked to stop."""
        return self._stopped is not None and self._stopped()

    def is_over(self) -> bool:
        """Whether the time is up: call this before a look, which is then the last."""
        return time.monotonic() >= self._end

    def nap(self, most: float | None = None) -> None:
        """Sleep until something may have changed, for at most `most` seconds, or until the time is up."""
        began = time.monotonic()
        left = min(LONGEST_POLL, self._end - began, LONGEST_POLL if most is None else most)
        before = self._seen
        try:
            self._seen = self._ask(before, max(0.0, left))
        except Woken:
            self._bell.heard()
        except Unavailable:
            self._seen = None  # the look that comes now raises it, or finds the gateway back
        else:
            pause = min((began - self._awake) * _SHARE, _PAUSE) * (0.5 + ids.chance(8) / 256)
            rest = min(began + pause, self._end) - time.monotonic()
            if self._seen != before and rest > 0 and not self.is_stopped():
                time.sleep(rest)
        self._awake = time.monotonic()

    def renew(self, seconds: float) -> None:
        """Wait for `seconds` from now on."""
        self._end = time.monotonic() + seconds
