"""The yard's time: the file server's, never this process's idea of the date."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk

_TRUSTED = 1_000_000_000  # nanoseconds that an observation is carried on by this machine's own ticking
_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while the machine sleeps


class StoreClock:
    """Carries the time of the last look on for a second, then looks at the filesystem again."""

    __slots__ = ("_disk", "_offset", "_probe", "_seen")

    def __init__(self, disk: Disk, probe: str) -> None:
        self._disk = disk
        self._probe = probe
        self._offset = 0
        self._seen = -_TRUSTED

    def now(self) -> int:
        """Milliseconds since 1970, good enough for events and delays."""
        ticks = time.clock_gettime_ns(_TICKS)
        if ticks - self._seen >= _TRUSTED:
            return self.exact()
        return (ticks + self._offset) // 1_000_000

    def fine(self) -> float:
        """The same with its fraction, for ids."""
        ticks = time.clock_gettime_ns(_TICKS)
        if ticks - self._seen >= _TRUSTED:
            self.exact()
        return (ticks + self._offset) / 1_000_000

    def exact(self) -> int:
        """The same, asked of the filesystem: what a lease is judged by."""
        now = self._disk.now(self._probe)
        self._seen = time.clock_gettime_ns(_TICKS)
        self._offset = now - self._seen
        return now // 1_000_000
